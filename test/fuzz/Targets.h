// Targets that stand in a file of their own.
#pragma once

#include "test/fuzz/Fuzz.h"

namespace weft::fuzz {

std::string language(const std::string &input);
std::string codesReached();
std::vector<std::string> languageSeeds();
std::vector<std::string> languageOthers();
std::vector<std::string> modelTexts(); // the shipped models, and one with plans, recipes and a table
const std::vector<std::string> &languageWords();

std::string lspStream(const std::string &input);
std::vector<std::string> lspStreamSeeds();
std::string lspText(const std::string &input);

std::string decisions(const std::string &input); // decisions["freeze"] of run.json
std::vector<std::string> decisionsSeeds();
std::string namedHeads(const std::string &input); // heads.json of a plan
std::vector<std::string> namedHeadsSeeds();
std::string controller(const std::string &input); // controller.safetensors
std::vector<std::string> controllerSeeds();
std::string choices(const std::string &input); // algorithms of products, in the cache
std::vector<std::string> choicesSeeds();
std::string object(const std::string &input); // machine code of kernels
std::vector<std::string> objectSeeds();
std::string rTable(const std::string &input); // R's lazy-load files
std::vector<std::string> rTableSeeds();
std::string task(const std::string &input); // builtin:mqar/...
std::vector<std::string> taskSeeds();

} // namespace weft::fuzz

//===- weft-opt.cpp - The program weft-opt --------------------------------===//
#include "tools/weft-opt/OptMain.h"

int main(int argc, char **argv) { return weft::optMain(argc, argv); }

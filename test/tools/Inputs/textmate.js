// textmate.js SOURCE MODULES: the scope of every character of the shipped models, as VS Code's own engine
// (vscode-textmate and vscode-oniguruma in the folder MODULES) gives it: {file: [[scope or null, ...] of a line, ...]}.
const fs = require("fs");
const path = require("path");

const [source, modules] = process.argv.slice(2).map((folder) => path.resolve(folder));
const textmate = require(path.join(modules, "vscode-textmate"));
const oniguruma = require(path.join(modules, "vscode-oniguruma"));
const grammarFile = path.join(source, "tools/editors/vscode/weft.tmLanguage.json");

async function main() {
  await oniguruma.loadWASM(fs.readFileSync(path.join(modules, "vscode-oniguruma/release/onig.wasm")).buffer);
  const registry = new textmate.Registry({
    onigLib: Promise.resolve({
      createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
      createOnigString: (text) => new oniguruma.OnigString(text),
    }),
    loadGrammar: async () => textmate.parseRawGrammar(fs.readFileSync(grammarFile, "utf8"), grammarFile),
  });
  const grammar = await registry.loadGrammar("source.weft");
  const models = path.join(source, "models");
  const all = {};
  for (const name of fs.readdirSync(models).filter((name) => name.endsWith(".weft"))) {
    let state = textmate.INITIAL; // goes on from line to line: a text that never ends would colour the rest
    all[name] = fs.readFileSync(path.join(models, name), "utf8").split("\n").map((line) => {
      const result = grammar.tokenizeLine(line, state);
      state = result.ruleStack;
      const scopes = new Array(line.length).fill(null);
      for (const token of result.tokens) scopes.fill(token.scopes[1] ?? null, token.startIndex, token.endIndex);
      return scopes;
    });
  }
  process.stdout.write(JSON.stringify(all));
}

main();

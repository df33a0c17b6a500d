// Starts `weft lsp` for .weft files.
const { LanguageClient } = require("vscode-languageclient/node");

let client;

exports.activate = () => {
  client = new LanguageClient("weft", "Weft", { command: "weft", args: ["lsp"] }, { documentSelector: [{ language: "weft" }] });
  return client.start();
};

exports.deactivate = () => client && client.stop();

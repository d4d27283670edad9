// Package protocol is the vocabulary of uwf: the words that the engine, the
// store and every agent agree on. It holds types, rules and texts, and does no
// I/O, so that a third party can read it as the specification.
//
//   - node.go, workflow.go: the payloads of the seven node kinds; schema/: their JSON Schemas;
//   - config.go: the shape of config.yaml, and the contract between the engine and an agent;
//   - output.go: the JSON objects that the command line prints;
//   - errors.go: error codes and exit codes;
//   - reference.md: the short command reference that agents are given.
//
// Growth rule, for everything here: new optional fields and new titles may be
// added; the meaning of what exists never changes.
package protocol

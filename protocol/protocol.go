// Package protocol defines the data shared by the engine, the store and all agents. It contains types, rules
// and texts and does no I/O, so that third parties can read it as the specification.
//
//   - node.go, workflow.go: the payloads of the seven node kinds; schema/: their JSON Schemas;
//   - config.go: the structure of config.yaml, and the contract between the engine and an agent;
//   - output.go: the JSON objects that the command line prints;
//   - errors.go: error codes and exit codes;
//   - reference.md: the short command reference that agents receive.
//
// Compatibility rule for everything here: new optional fields and new titles can be added, but the meaning of
// existing ones never changes.
package protocol

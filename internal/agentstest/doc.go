// Package agentstest runs the adapters with the real programs of other people, in
// their newest versions, which it installs from the npm registry below .tmp, against a
// model that plays a script on this machine. `make test-agents` runs it and prints which really ran;
// `make test` does not: there fixtures and fakes stand in for the programs.
//
//   - model_test.go: the script, whatever the dialect;
//   - anthropic_test.go and its like: the dialects of model endpoints;
//   - world_test.go: the built commands, a home, and uwf on the command line;
//   - install_test.go: the programs;
//   - stories_test.go: what a user does, for every program;
//   - claude_test.go and its like: one program each.
package agentstest

// Package agentstest tests the adapters with the latest versions of the real programs, which it installs from
// the npm registry below .tmp, against a scripted model on this machine. `make test-agents` runs it and
// prints which programs were really run; `make test` does not, and uses fixtures and fakes instead.
//
//   - model_test.go: the script, for all dialects;
//   - anthropic_test.go etc.: the dialects of model endpoints;
//   - world_test.go: the built commands, a home, and uwf on the command line;
//   - install_test.go: the programs;
//   - stories_test.go: user scenarios for every program;
//   - claude_test.go etc.: one program each.
package agentstest

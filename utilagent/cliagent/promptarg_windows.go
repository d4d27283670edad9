package cliagent

// maxArgument bounds a prompt on the command line: Windows allows 32 Ki characters for all arguments
// together.
const maxArgument = 24 << 10

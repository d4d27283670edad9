package cliagent

// maxArgument is how long a prompt on a command line may be: Windows takes 32 Ki
// characters in all arguments together.
const maxArgument = 24 << 10

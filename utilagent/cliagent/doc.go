// Package cliagent makes an agent of another program: somebody's coding agent
// with a command line of its own.
//
// An agent is described by an [Adapter]: a command line, a pure [Decoder] of what
// the program prints, and a few facts. [Options] makes the whole agent of it:
//
//	func main() { agentkit.Run(cliagent.Options(adapter())) }
//
// What holds for every agent built on it:
//   - the exit status is not the outcome: the decoder judges by what was printed;
//   - a session is verified, never believed: one that is missing, changed or of
//     another directory leads to a fresh run with the whole prompt, and the
//     step's detail says so;
//   - usage is of the run alone, cached tokens apart, also where the program
//     counts on;
//   - a run that reaches its limit of turns, time or cost in a session that can
//     go on suspends the thread; no work is lost;
//   - every run ends in bounded time, with all processes that it started;
//   - both streams of the program are kept in the run directory.
//
// The parts:
//   - adapter.go, decoder.go, event.go, outcome.go, transport.go: what an adapter is;
//     json.go, calls.go, classify.go: what decoders share;
//   - options.go, args.go, settings.go, program.go, probe.go: from a command line
//     and a config to a program and its limits;
//   - run.go, try.go, conclude.go, fail.go: one step, one call of it, and what comes
//     of them; sessions.go, usage.go: what is remembered of a session;
//   - call.go, record.go, answer.go: events become turns, and which is the answer;
//   - lines.go: a program that prints lines; another has a [Transport] of its own;
//   - process.go, watch.go, logs.go, and package output: a child that
//     always ends, and takes no more memory than it should.
package cliagent

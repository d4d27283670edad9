// Package engine runs workflows: it starts threads, makes their steps, and moves their heads. uwf is
// one program on it; a bot, a web page or a worker of yours is another. Both work on the same home,
// at the same time, and what they store is the same.
//
// # A program
//
// examples/embed is a whole program of 60 lines. Its parts:
//
//	func main() { os.Exit(host.Main("bot", run)) }
//
//	e, err := host.Open(ctx, process, host.Options{Events: follow})
//	started, err := catalog.Of(e).Start(ctx, e, "review.yaml", protocol.Start{Prompt: task, Cwd: dir}, engine.StartOptions{})
//	outs, err := e.Do(ctx, started.Thread, engine.Work{})        // to the end, or until a person is needed
//	outs, err = e.Do(ctx, started.Thread, engine.Work{Do: engine.DoResume, Prompt: answer})
//	trace, err := view.TraceOf(ctx, e, started.Thread)
//
// host.Open finds the home as uwf does (UWF_HOME, else ~/.uwf), adds its .env to the environment, and
// takes agents from its config.yaml. Agents are programs on PATH; uwf itself need not be there. To
// run what it starts in a sandbox and in the background, the engine starts your program once more:
// that is why main calls host.Main.
//
// Until there is a release, work from a clone: in it, go work use ../bot adds your module to its
// workspace, and GOWORK=/path/of/clone/go.work go build builds it, from any directory.
//
// # Act
//
//   - [Engine.Do] does one thing to a thread and returns an output for each step: [DoStep] (the zero
//     [Work] goes to the end), [DoResume] with words, [DoAnswer] with data, [DoPoke], [DoUndo],
//     [DoRedo], [DoRetry].
//   - [Engine.Background] does the same in a process of its own, which outlives yours, and returns
//     once an agent has started.
//   - [Engine.Stop], [Engine.Kill], [Engine.Fork], [Engine.Message] (to an agent at work),
//     [Engine.Grant] (more money, tokens or time), [Engine.Tick] (one step of every thread that is
//     due).
//   - status.Reader.Actions lists what can be done with a thread now, each with the JSON Schema of
//     what goes with it. Build buttons and menus from it. What it cannot know without the thread's lock
//     is found out when somebody acts: that the thread has moved, or comes from elsewhere and nobody
//     has said where it works ([Work].Cwd) or confirmed its commands.
//
// What the verbs of Actions are as calls:
//
//	continue           Do(Work{Do: DoContinue})
//	resume             Do(Work{Do: DoResume, Prompt: words})
//	answer             Do(Work{Do: DoAnswer, Answer: &Answer{Value: data, At: head, By: who}})
//	retry              Do(Work{Do: DoPoke, Prompt: words}); "" repeats the last step as it was
//	undo, redo         Do(Work{Do: DoUndo}), Do(Work{Do: DoRedo})
//	raise-limit        Grant(thread, Limits{}, More{Again: true}), then Do(Work{})
//	fork               Fork(node, ForkOptions{})
//	stop, kill, message    Stop, Kill, Message
//	wait               Reader.Wait
//	read, diagnose     view.History, view.Diagnose
//
// [DoRetry] is for a parent: it has the child with [Work].Key played again.
//
// Other packages:
//
//   - Package catalog finds workflows, starts threads of them and keeps their names; package worktree
//     has what was made: Apply, Worktrees, Redact; package remotes pushes and pulls threads.
//   - Package names finds what a person types: "@", "ab12", "@/docs", "@3".
//
// # See
//
//   - [Engine.Events] is called with everything that happens, on one goroutine at a time. view.Follow
//     reports steps, turns and children of a thread that another process works on, as it finds them: of
//     steps that follow each other at once it may miss turns.
//   - Engine.Reader only reads: Show, Actions, Overview, Totals.
//   - Package view has what there is to show, as values: Thread, History, Turns, TraceOf, Diagnose,
//     Inbox, Stats. Package htmlpage makes pages of them.
//
// # Errors
//
// Every error of this package is, or wraps, a *protocol.Error. Decide by its Code ([Code] returns it
// for any error); its Reasons say why, each a name with facts, for a table of your own texts; its
// Message is for people. No error names a command: what to type or press is the front end's matter.
// uwf's table is util/hints; with Reader.Hints set, outputs have its hints, too. An output whose
// status is suspended is no error: its Question says what is asked, and the answer may come a year
// later, from another process. Without a Question, the thread has stopped at a limit.
//
// # What holds
//
//   - Every step is safe to repeat. If your program dies, the next Do takes over what the agent had
//     finished. One process at a time steps a thread; the second gets the code locked.
//   - To stop, end the context: the agent is asked to stop, and what it finishes is kept.
//   - A workflow from elsewhere runs nothing before somebody has confirmed it: Do then returns an
//     [*UntrustedError] that names its commands, and so does starting one. Show them, ask, call
//     [Engine.Confirm], and do the same once more. The same holds for a workflow whose commands would get
//     secrets that the config grants to its name.
//   - Texts of agents are strangers' texts. env.Env.Stdout disarms them for a terminal; escape them
//     for any other medium.
//   - With Reader.ReadOnly nothing is written and no lock is taken; what would change something fails.
//
// # Parts of your own
//
// Engine is a struct, and Open only fills it. Replace a field to replace a part: Reader.Store (a
// cas.Store, tested by cas/castest), Reader.Heads (heads.Heads; cas/heads/headstest), Reader.Locks
// (locker.Locker; engine/locker/lockertest), Reader.Config, and Run, which runs an agent (nil: as a
// process, [agentproc.Run]).
//
// The module is v0: names may change with a minor version.
//
// # How it works
//
// The engine holds no state of its own. All of it is in the store, the heads and the run directory,
// so that the next process goes on where a killed one stopped. A request is decided by package
// internal/decide, a pure function of the facts that session.go has read under the thread's lock
// (lock.go), and do.go and move.go carry out the action. attempt.go, invoke.go and tries.go make a
// step; work.go makes several under one lock; drive.go runs threads that play a role together;
// stop.go ends what is in flight.
package engine

// Package engine runs workflows: it starts threads, makes their steps, and moves their heads. uwf is one
// program built on it; your bot, web page or worker can be another. They can use the same home at the same
// time, and they store the same data.
//
// # Example
//
// examples/embed is a complete program of 60 lines. Its main parts:
//
//	func main() { os.Exit(host.Main("bot", run)) }
//
//	e, err := host.Open(ctx, process, host.Options{Events: follow})
//	started, err := catalog.Of(e).Start(ctx, e, "review.yaml", protocol.Start{Prompt: task, Cwd: dir}, engine.StartOptions{})
//	outs, err := e.Do(ctx, started.Thread, engine.Work{}) // run until the end, or until a person is needed
//	outs, err = e.Do(ctx, started.Thread, engine.Work{Do: engine.DoResume, Prompt: answer})
//	trace, err := view.TraceOf(ctx, e, started.Thread)
//
// host.Open finds the home as uwf does (UWF_HOME, default ~/.uwf), adds its .env to the environment, and
// reads agents from its config.yaml. Agents are programs on PATH; uwf itself need not be installed. The
// engine starts your program again to run commands in a sandbox and to work in the background. That is why
// main calls host.Main.
//
// Until the first release, build against a clone: run "go work use ../bot" in the clone to add your module to
// its workspace, then "GOWORK=/path/of/clone/go.work go build" in any directory.
//
// # Actions
//
//   - [Engine.Do] performs one action on a thread and returns one output per step. The zero [Work] runs the
//     thread to its end ([DoStep]). The others are [DoResume] with a prompt, [DoAnswer] with data, [DoPoke],
//     [DoUndo], [DoRedo] and [DoRetry].
//   - [Engine.Background] does the same in a separate process, which outlives yours. It returns once an agent
//     has started.
//   - [Engine.Stop], [Engine.Kill] and [Engine.Fork] act on a thread. [Engine.Message] sends a message to a
//     running agent, [Engine.Grant] raises the limits on money, tokens or time, and [Engine.Tick] makes one
//     step of every thread that is due.
//   - status.Reader.Actions lists what a user can do with a thread now, each action with the JSON Schema of
//     its input. Build buttons and menus from it. Some conditions are only checked when the action runs: the
//     thread may have moved, its directory ([Work].Cwd) may be unset because it comes from another machine,
//     or its commands may be unconfirmed.
//
// The verbs of Actions correspond to these calls:
//
//	continue           Do(Work{Do: DoContinue})
//	resume             Do(Work{Do: DoResume, Prompt: text})
//	answer             Do(Work{Do: DoAnswer, Answer: &Answer{Value: data, At: head, By: user}})
//	retry              Do(Work{Do: DoPoke, Prompt: text}); "" repeats the last step unchanged
//	undo, redo         Do(Work{Do: DoUndo}), Do(Work{Do: DoRedo})
//	raise-limit        Grant(thread, Limits{}, More{Again: true}), then Do(Work{})
//	fork               Fork(node, ForkOptions{})
//	stop, kill, message    Stop, Kill, Message
//	wait               Reader.Wait
//	read, diagnose     view.History, view.Diagnose
//
// [DoRetry] applies to a parent thread: it starts a new attempt of the child with [Work].Key.
//
// Other packages:
//
//   - Package catalog finds workflows, starts threads from them, and manages their names. Package worktree
//     manages the resulting files: Apply, Worktrees, Redact. Package remotes pushes and pulls threads.
//   - Package names resolves what users type: "@", "ab12", "@/docs", "@3".
//
// # Reading
//
//   - [Engine.Events] is called for every event, never concurrently. view.Follow reports the steps, turns and
//     children of a thread that another process works on. If steps follow each other quickly, it may miss
//     turns.
//   - Engine.Reader is read-only: Show, Actions, Overview, Totals.
//   - Package view returns data to display: Thread, History, Turns, TraceOf, Diagnose, Inbox, Stats.
//
// # Errors
//
// Every error of this package is or wraps a *protocol.Error. Branch on its Code; [Code] returns the code of
// any error. Its Reasons are names with facts, which you can map to your own texts. Its Message is for
// people. Errors contain no commands: a front end decides what to suggest. uwf's table of suggestions is
// util/hints; if Reader.Hints is set, outputs include its hints.
//
// An output with status suspended is not an error. Its Question holds the question, and the answer may come a
// year later from another process. Without a Question, the thread has stopped at a limit.
//
// # Guarantees
//
//   - Every step is safe to repeat. If your program dies, the next Do adopts what the agent had finished.
//     Only one process at a time steps a thread; a second one gets the code locked.
//   - To stop, cancel the context. The engine asks the agent to stop and keeps what it has finished.
//   - A workflow from another origin runs nothing until a user has confirmed it. Starting it and Do return an
//     [*UntrustedError] that lists its commands. Show them, ask the user, call [Engine.Confirm], and repeat
//     the call. The same applies if the config grants secrets to a workflow's commands by its name.
//   - Agent output is untrusted. env.Env.Stdout sanitizes it for a terminal; escape it yourself for any
//     other medium.
//   - If Reader.ReadOnly is set, the engine writes nothing and takes no locks. Operations that would change
//     something fail.
//
// # Replaceable parts
//
// Engine is a struct that Open fills in. Set a field to replace a part: Reader.Store (a cas.Store, tested by
// cas/castest), Reader.Heads (a heads.Heads, tested by cas/heads/headstest), Reader.Locks (a locker.Locker,
// tested by engine/locker/lockertest), Reader.Config, and Run, which runs an agent (if nil, [agentproc.Run]
// starts a process).
//
// The module is at v0: names may change in a minor version.
//
// # Implementation
//
// The engine keeps no state in memory. All state is in the store, the heads and the run directory, so the
// next process continues where a killed one stopped. Package internal/decide chooses the action for a
// request. It is a pure function of the facts that session.go reads under the thread's lock (lock.go). do.go
// and move.go carry out the action. attempt.go, invoke.go and tries.go make a step; work.go makes several
// under one lock; drive.go runs a thread together with its children; stop.go ends running work.
package engine

package agentkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/suggest"
)

// Run runs the agent in this process and exits. It is all that main needs to call.
func Run(o Options) {
	p, err := OS()
	if err != nil {
		fmt.Fprintln(os.Stderr, protocol.AgentName(o.Name)+":", err)
		os.Exit(1)
	}
	os.Exit(Main(context.Background(), p, o))
}

// lockFD is the descriptor on which an agent inherits the lock that shows the engine it is alive. Children
// must not inherit it: the thread would look busy until the last of them exits.
const lockFD = 3

// Main runs an agent and returns its exit status: 0; 2 for a usage error; 129, 130 or 143 after a signal;
// otherwise 1. With a Process from [OS] it handles the process's signals: the first interrupt or terminate
// cancels the context of Options.Run, the second kills the process. With any other Process it leaves signals
// and descriptors alone, so tests can run it; see package agentkittest.
func Main(ctx context.Context, p Process, o Options) int {
	e, err := p.env()
	name := protocol.AgentName(o.Name)
	if err != nil {
		fmt.Fprintf(e.Stderr, "%s: %v\n", name, err)
		return 1
	}
	if p.system != nil {
		proc.GrowStack(false)
		with := proc.WithSignals
		if o.Instant {
			with = proc.WithSignalsOnDemand
		} else {
			// A write to a closed pipe returns an error. Not beside the start: a short agent writes before that ends.
			signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
		}
		var stop func()
		ctx, stop = with(ctx)
		defer stop()
		if dir := e.Get(protocol.EnvRunDir); dir != "" {
			durable.KeepFromChildren(lockFD, runfiles.Dir(dir).File(runfiles.LockFile))
		}
	}
	if o.Dispatch != nil {
		if status, dispatched := o.Dispatch(e.Args, e.Environ, e.Stderr); dispatched {
			return status
		}
	}
	inv, err := parse(e.Args, o)
	inv.process = p.system != nil
	switch {
	case err != nil:
		complain(e.Stderr, name, err)
		refuse(e, err)
		return exitCode(ctx, err)
	case inv.help:
		return write(e, name, help(o))
	case inv.version:
		return write(e, name, name+" "+version(o)+"\n")
	}
	if inv.check {
		err = check(ctx, e, o)
	} else {
		err = work(ctx, e, o, inv)
	}
	if err != nil {
		complain(e.Stderr, name, err)
		return exitCode(ctx, err)
	}
	return 0
}

// complain prints an error and its hints for the person who typed the command. Hints come from our own errors
// only, so text from a model or a program cannot pose as one.
func complain(w io.Writer, name string, err error) {
	text := plaintext.Indent(plaintext.Escape(err.Error()))
	if errors.As(err, new(*usageError)) {
		text += "\n" + synopsis(name)
	}
	fmt.Fprintf(w, "%s: %s\n", name, text)
	for _, h := range hintsOf(err) {
		fmt.Fprintf(w, "hint: %s\n", plaintext.Line(h))
	}
}

// hintsOf returns the hints of our own errors. The error text itself is untrusted.
func hintsOf(err error) []string {
	var of interface{ Hints() []string }
	var coded *protocol.Error
	switch {
	case errors.As(err, &of):
		return of.Hints()
	case errors.As(err, &coded):
		return coded.Hints
	}
	return nil
}

// refuse reports to the engine, if it started the agent, why nothing was done.
func refuse(e env.Env, err error) {
	var usage *usageError
	if e.Get(protocol.EnvRunDir) == "" || !errors.As(err, &usage) {
		return
	}
	// If this fails, the engine shows stderr instead.
	_ = (&printer{w: e.Stdout}).result(protocol.Result{Error: usage.Error(), Hints: usage.hints})
}

// work makes the step and prints the result line. It prints one for a failure as well, because the engine
// reads the cost and the rejected answer from it.
func work(ctx context.Context, e env.Env, o Options, inv invocation) error {
	out := &printer{w: e.Stdout, yaml: inv.yaml}
	result, err := play(ctx, e, o, inv, out)
	if err == nil {
		return out.result(result)
	}
	result.Error, result.Hints = err.Error(), hintsOf(err)
	result = classed(result, err)
	return errors.Join(err, out.result(result))
}

func write(e env.Env, name, text string) int {
	if _, err := io.WriteString(e.Stdout, text); err != nil {
		fmt.Fprintf(e.Stderr, "%s: stdout: %v\n", name, err)
		return 1
	}
	return 0
}

func exitCode(ctx context.Context, err error) int {
	if sig, ok := errors.AsType[*proc.SignalError](context.Cause(ctx)); ok {
		return sig.Code().ExitCode()
	}
	if _, ok := errors.AsType[*usageError](err); ok {
		return protocol.CodeUsage.ExitCode()
	}
	return protocol.CodeFailed.ExitCode()
}

// invocation is the parsed command line.
type invocation struct {
	thread, role  string
	prompt        *string       // --prompt
	promptRef     protocol.Hash // --prompt-ref
	yaml          bool          // print the result as YAML
	help, version bool
	check         bool // check the program that the agent drives
	process       bool // the agent is this process; set by Main, not by an argument
}

// usageError reports a wrong command line.
type usageError struct {
	reason, agent string
	hints         []string
}

func (e *usageError) Error() string { return e.reason }

// Hints returns suggestions.
func (e *usageError) Hints() []string { return e.hints }

// newUsageError suggests corrections for flags that the agent's help does not list. Some agents pass flags on
// to a program, so an unlisted flag alone is not an error.
func newUsageError(reason string, args []string, o Options) *usageError {
	e := &usageError{reason: reason, agent: protocol.AgentName(o.Name)}
	known := regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(help(o), -1)
	for _, arg := range args {
		name, _, _ := strings.Cut(arg, "=")
		if name == "--" {
			break
		}
		if !strings.HasPrefix(name, "-") || slices.Contains(known, name) {
			continue
		}
		if near := suggest.Nearest(name, known, 1); len(near) > 0 {
			e.hints = append(e.hints, "did you mean "+near[0]+"?")
		}
	}
	e.hints = append(e.hints, e.agent+" --help")
	return e
}

// parse reads the command line: the kit's flags anywhere before "--", the agent's own with Options.ParseArgs,
// then thread and role, by flag or by position.
func parse(args []string, o Options) (invocation, error) {
	typed := args
	fail := func(format string, a ...any) (invocation, error) {
		return invocation{}, newUsageError(fmt.Sprintf(format, a...), typed, o)
	}
	if err := o.validate(); err != nil {
		return invocation{}, err
	}
	var inv invocation
	if args, inv.check = withoutCheck(args, o); inv.check {
		return inv, checked(args, o)
	}
	rest, err := inv.take(args)
	if err != nil {
		return fail("%v", err)
	}
	if inv.help || inv.version {
		return inv, nil
	}
	if o.ParseArgs != nil {
		if rest, err = o.ParseArgs(rest); err != nil {
			return fail("%v", err)
		}
	}
	// The agent's parser may return arguments that followed a "--".
	if rest, err = inv.take(slices.DeleteFunc(rest, func(s string) bool { return s == "--" })); err != nil {
		return fail("%v", err)
	}
	if err := inv.position(rest); err != nil {
		return fail("%v", err)
	}
	if inv.prompt != nil && strings.TrimSpace(*inv.prompt) == "" {
		return fail("%s is empty; if uwf started this agent, a variable of the edge's prompt has no value", protocol.FlagPrompt)
	}
	return inv, nil
}

// take removes the kit's flags from args. A flag's value is always the next argument, because a prompt may
// begin with a dash.
func (inv *invocation) take(args []string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, attached := strings.Cut(args[i], "=")
		switch name {
		case "--":
			return append(rest, args[i:]...), nil
		case "--help", "-h":
			inv.help = true
			continue
		case "--version", "-V":
			inv.version = true
			continue
		case protocol.FlagThread, protocol.FlagRole, protocol.FlagPrompt, protocol.FlagPromptRef, protocol.FlagFormat:
		default:
			rest = append(rest, args[i])
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		if err := inv.set(name, value); err != nil {
			return nil, err
		}
	}
	return rest, nil
}

func (inv *invocation) set(name, value string) (err error) {
	switch name {
	case protocol.FlagThread:
		inv.thread = value
	case protocol.FlagRole:
		inv.role = value
	case protocol.FlagPrompt:
		inv.prompt = &value
	case protocol.FlagPromptRef:
		if inv.promptRef, err = protocol.ParseHash(value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	case protocol.FlagFormat:
		if value != "json" && value != "yaml" {
			return fmt.Errorf("%s: %q is unknown: want json or yaml", name, value)
		}
		inv.yaml = value == "yaml"
	}
	return nil
}

// position reads thread and role from the remaining arguments.
func (inv *invocation) position(rest []string) error {
	for _, arg := range rest {
		switch {
		case strings.HasPrefix(arg, "-"):
			return fmt.Errorf("unknown flag %s", arg)
		case inv.thread == "":
			inv.thread = arg
		case inv.role == "":
			inv.role = arg
		default:
			return fmt.Errorf("unexpected argument %q", arg)
		}
	}
	if inv.thread == "" || inv.role == "" {
		return fmt.Errorf("thread and role are required")
	}
	return nil
}

func synopsis(agent string) string {
	return fmt.Sprintf("usage: %s <thread-id> <role> [%s HASH]\n       %s %s ID %s NAME %s TEXT",
		agent, protocol.FlagPromptRef, agent, protocol.FlagThread, protocol.FlagRole, protocol.FlagPrompt)
}

// help returns the text of --help.
func help(o Options) string {
	text := synopsis(protocol.AgentName(o.Name)) + `

An agent program of uwf, which starts it for each step. If you start it
yourself, it stores a step and prints its hash, but does not add the step to
the thread.

Flags:
  --prompt-ref HASH    text node with the instruction for this step
  --prompt TEXT        instruction for this step
  --format FORMAT      format of the result line: json or yaml (default json)
  --version            print the version
  --help               print help
`
	if o.Check != nil {
		text += "  --check              check the program that this agent runs, and print its\n" +
			"                       path, version and problems as JSON; exit 1 on problems\n"
	}
	if o.Usage != "" {
		text += "\n" + strings.TrimRight(o.Usage, "\n") + "\n"
	}
	return text
}

// version returns the agent's version, from its options or the build info.
func version(o Options) string {
	if o.Version != "" {
		return o.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// printer writes the contract's lines to stdout. Safe for concurrent use.
type printer struct {
	mu   sync.Mutex
	w    io.Writer
	yaml bool // print the result as YAML
}

// announce prints the lines for nodes that this step stored.
func (p *printer) announce(list ...protocol.TurnLine) error {
	for _, l := range list {
		line, err := json.Marshal(l)
		if err != nil {
			return err
		}
		if err := p.write(string(line) + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// result prints the last line. It starts with a newline, so that an unfinished line that the agent left on
// stdout cannot absorb it.
func (p *printer) result(r protocol.Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if p.yaml {
		return p.write("\n" + blockYAML(line))
	}
	return p.write("\n" + string(line) + "\n")
}

func (p *printer) write(s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := io.WriteString(p.w, s); err != nil {
		return fmt.Errorf("stdout: %w", err)
	}
	return nil
}

// blockYAML writes a JSON object as YAML, one key per line, with values in flow style (JSON).
func blockYAML(object []byte) string {
	var b strings.Builder
	dec := json.NewDecoder(strings.NewReader(string(object)))
	if _, err := dec.Token(); err != nil {
		return string(object) + "\n"
	}
	for dec.More() {
		key, err := dec.Token()
		var value json.RawMessage
		if err != nil || dec.Decode(&value) != nil {
			return string(object) + "\n" // flow style is valid YAML
		}
		fmt.Fprintf(&b, "%v: %s\n", key, value)
	}
	return b.String()
}

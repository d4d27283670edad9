package agentkit

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/suggest"
)

// invocation is the command line.
type invocation struct {
	thread, role  string
	prompt        *string       // --prompt
	promptRef     protocol.Hash // --prompt-ref
	yaml          bool          // of the result line
	help, version bool
	check         bool // of the program that the agent drives
	process       bool // the agent is this process; it is no argument, but goes the same way
}

// usageError is a wrong command line.
type usageError struct {
	reason, agent string
	hints         []string
}

// Error implements error.
func (e *usageError) Error() string { return e.reason }

// Hints are what may have been meant.
func (e *usageError) Hints() []string { return e.hints }

// newUsageError adds what may have been meant by flags that the agent's help does
// not know. Some agents hand flags on to a program, so that those are no mistakes
// as such.
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

// parse reads the command line: the kit's flags anywhere up to "--", the agent's
// own by Options.ParseArgs, then thread and role, by name or by position.
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
	// What the agent's parser returns may have stood behind a "--".
	if rest, err = inv.take(slices.DeleteFunc(rest, func(s string) bool { return s == "--" })); err != nil {
		return fail("%v", err)
	}
	if err := inv.position(rest); err != nil {
		return fail("%v", err)
	}
	if inv.prompt != nil && strings.TrimSpace(*inv.prompt) == "" {
		return fail("%s is empty: if uwf started this agent, a variable of the edge's prompt has no value", protocol.FlagPrompt)
	}
	return inv, nil
}

// take takes the kit's flags out of args. The value of a flag is the next
// argument whatever it looks like: a prompt may begin with a dash.
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

// position reads thread and role from what is left.
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

// help is the text of --help.
func help(o Options) string {
	text := synopsis(protocol.AgentName(o.Name)) + `

An agent for uwf. The engine starts it; by hand it makes a step from the head of
an active thread and prints the step's hash, but moves no head.

  --prompt-ref HASH    a text node with the instruction for this step
  --prompt TEXT        the instruction itself
  --format json|yaml   of the result line (default json)
  --version, --help
`
	if o.Check != nil {
		text += "  --check              say where the program is that this agent drives, its version, and\n" +
			"                       what is wrong with it, as JSON; exit status 1 if anything is\n"
	}
	if o.Usage != "" {
		text += "\n" + strings.TrimRight(o.Usage, "\n") + "\n"
	}
	return text
}

// version is the agent's version: as it says, else as it was built.
func version(o Options) string {
	if o.Version != "" {
		return o.Version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// What stands for something in the command's arguments.
const (
	promptMark  = "{prompt}"  // the prompt; if no argument has it, the prompt goes to stdin
	sessionMark = "{session}" // the id of the session to go on in
)

// options are our own arguments, before "--".
type options struct {
	session *regexp.Regexp // finds the id of the session in what the command prints
	resume  []string       // arguments that are added to go on in a session
}

const usage = `uwf-exec [--session REGEXP] [--resume ARGS] -- COMMAND…

COMMAND gets the prompt on stdin, or in the place of {prompt} in its arguments, and
prints the answer on stdout. It runs in the step's directory, without a shell.

  --session REGEXP   finds the id of the session on stdout or stderr, as the
                     expression's first group; the last one counts
  --resume ARGS      added to COMMAND to go on in a session; {session} is its id

Without both the command is taken to remember nothing: what is wrong with an answer
is sent with the whole prompt.`

// adapter describes a command that nothing is known about but what it prints.
func adapter(o *options) cliagent.Adapter {
	return cliagent.Adapter{
		Name: "exec", Commanded: true, Usage: usage,
		ParseArgs: o.parse,
		Command:   o.command,
		Decoder:   func(cliagent.Call) cliagent.Decoder { return &decoder{session: o.session} },
		Sessions:  cliagent.Sessions{Optional: true, Unverified: true},
	}
}

// parse takes our own arguments.
func (o *options) parse(args []string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, attached := strings.Cut(args[i], "=")
		if name != "--session" && name != "--resume" {
			rest = append(rest, args[i])
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		if name == "--resume" {
			o.resume = strings.Fields(value)
			continue
		}
		if o.session, err = regexp.Compile(value); err != nil {
			return nil, fmt.Errorf("--session: %w", err)
		}
		if o.session.NumSubexp() == 0 {
			return nil, errors.New("--session: the expression needs a group, such as session: (\\S+)")
		}
	}
	if (o.session == nil) != (len(o.resume) == 0) {
		return nil, errors.New("--session and --resume go together: one finds the session, the other goes on in it")
	}
	return rest, nil
}

// command is the command line of a call.
func (o *options) command(c cliagent.Call) (cliagent.Invocation, error) {
	inv := cliagent.Invocation{Args: slices.Clone(c.Extra), Stdin: c.Prompt, Silent: true}
	if c.Resume {
		for _, arg := range o.resume {
			inv.Args = append(inv.Args, strings.ReplaceAll(arg, sessionMark, c.Session))
		}
	}
	for i, arg := range inv.Args {
		if !strings.Contains(arg, promptMark) {
			continue
		}
		prompt, err := c.PromptArgument()
		if err != nil {
			return inv, err
		}
		inv.Args[i], inv.Stdin = strings.ReplaceAll(arg, promptMark, prompt), ""
	}
	return inv, nil
}

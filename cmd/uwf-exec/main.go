// Command uwf-exec turns any program that takes a prompt and prints an answer into a uwf agent:
//
//	uwf-exec -- <command…>
//
// The engine starts it; see package cliagent.
package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter(&options{}))) }

// Placeholders in the command's arguments.
const (
	promptMark  = "{prompt}"  // the prompt; without this placeholder it goes to stdin
	sessionMark = "{session}" // the ID of the session to continue
)

// options are the arguments before "--".
type options struct {
	session *regexp.Regexp // matches the session ID in the output
	resume  []string       // arguments added to continue a session
}

const usage = `uwf-exec [--session REGEXP] [--resume ARGS] -- COMMAND…

Runs COMMAND in the working directory of the step, without a shell. COMMAND
reads the prompt from stdin, or as {prompt} in its arguments, and prints the
answer to stdout.

  --session REGEXP     find the session ID in the output: the first group of the
                       last match
  --resume ARGS        arguments to add when a session continues; {session} is
                       its ID

Without these flags, each call starts a new session with the whole prompt.`

// adapter describes a command about which only its output is known.
func adapter(o *options) cliagent.Adapter {
	return cliagent.Adapter{
		Name: "exec", Commanded: true, Usage: usage,
		ParseArgs: o.parse,
		Command:   o.command,
		Decoder:   func(cliagent.Call) cliagent.Decoder { return &decoder{session: o.session} },
		Sessions:  cliagent.Sessions{Optional: true, Unverified: true},
	}
}

func (o *options) parse(args []string) (rest []string, err error) {
	rest, err = cliagent.TakeFlags(args, o.set, "--session", "--resume")
	if err == nil && (o.session == nil) != (len(o.resume) == 0) {
		err = errors.New("--session and --resume must be used together")
	}
	return rest, err
}

func (o *options) set(name, value string) (err error) {
	if name == "--resume" {
		o.resume = strings.Fields(value)
		return nil
	}
	if o.session, err = regexp.Compile(value); err != nil {
		return fmt.Errorf("--session: %w", err)
	}
	if o.session.NumSubexp() == 0 {
		return errors.New("--session: missing group in the expression, such as session: (\\S+)")
	}
	return nil
}

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

// maxAnswer bounds an answer; the rest of a longer one is only kept in the run directory.
const maxAnswer = 2 << 20

// decoder takes all of stdout as the answer.
type decoder struct {
	session *regexp.Regexp // nil if there are no sessions
	id      string
	answer  strings.Builder
	cut     bool // the answer was truncated
}

// Line implements [cliagent.Decoder].
func (d *decoder) Line(line []byte) ([]cliagent.Event, bool) {
	if d.find(line) || d.cut {
		return nil, true
	}
	room := maxAnswer - d.answer.Len()
	d.cut = len(line) > room
	d.answer.Write(line[:max(min(len(line), room), 0)]) // a line ending can exceed the limit
	d.answer.WriteByte('\n')
	return nil, true
}

// ErrLine implements [cliagent.ErrLiner].
func (d *decoder) ErrLine(line []byte) []cliagent.Event {
	d.find(line)
	return nil
}

// find looks for the session ID. It reports whether the line contains nothing else.
func (d *decoder) find(line []byte) bool {
	if d.session == nil {
		return false
	}
	text := plaintext.Strip(string(line)) // it can be colored
	m := d.session.FindStringSubmatch(text)
	if m == nil || m[1] == "" {
		return false
	}
	d.id = m[1]
	return strings.TrimSpace(text) == strings.TrimSpace(m[0])
}

// End implements [cliagent.Decoder]. Only the exit status shows whether the text is an answer.
func (d *decoder) End(e cliagent.Exit) cliagent.Outcome {
	text := strings.TrimSpace(plaintext.Strip(d.answer.String()))
	if d.cut {
		text += "\n\n[the answer continues; the whole text is in the run directory]"
	}
	out := cliagent.Outcome{Kind: cliagent.OK, Final: text}
	if e.Code != 0 {
		e.Noise = cliagent.Excerpt(text)
		out = e.Unfinished()
	}
	out.Session = d.id
	return out
}

package threads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/host"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/formfields"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/util/yamldoc"
)

func (a Commands) threadAnswerCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "answer", ArgsUsage: "<thread>", Usage: "answer for a role that a person plays",
		Flags: append([]ucli.Flag{
			&ucli.StringSliceFlag{Name: "set", Usage: "`NAME=VALUE` set a field of the answer; NAME=@FILE reads a file"},
			&ucli.StringFlag{Name: "file", Aliases: []string{"f"}, Usage: "`FILE` answer as YAML or JSON; - reads stdin"},
			&ucli.StringFlag{Name: "as", Usage: "`NAME` name to record (default git's user.name)"},
		}, slices.Concat(a.agentFlags(), []ucli.Flag{keepFilesFlag()}, countFlags(), remoteFlags())...),
	}, a.threadAnswer)
}

func (a Commands) threadAnswer(ctx context.Context, c *ucli.Context) error {
	w := a.workOf(c)
	id, e, err := a.threadHere(ctx, c)
	if err != nil {
		return err
	}
	at, err := e.Reader.Show(ctx, id)
	if err != nil {
		return err
	}
	w.Do, w.Answer = engine.DoAnswer, &engine.Answer{At: at.Head}
	if w.Expect != "" {
		w.Answer.At, w.Expect = w.Expect, ""
	}
	if w.Answer.By, err = a.answerer(ctx, c); err != nil {
		return err
	}
	if at.Question == nil || at.Question.Schema == nil {
		return a.work(ctx, c, w) // reports what the thread waits for instead
	}
	if w.Answer.Value, err = a.formValue(ctx, c, e, at); err != nil {
		return err
	}
	if asked := len(c.StringSlice("set")) == 0 && !c.IsSet("file"); asked && !c.IsSet("count") && !c.Bool("until-end") && !c.Bool("background") {
		reply, err := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, "Continue the thread then? [Y/n] ")
		switch {
		case errors.Is(err, setup.ErrNoMore): // the answer was given nevertheless
			reply = "no"
		case err != nil:
			return err
		}
		if reply = strings.ToLower(reply); reply != "n" && reply != "no" {
			w.Steps = engine.UntilEnd
		}
	}
	return a.work(ctx, c, w)
}

// formValue returns the answer from the flags, or from the user at the terminal.
func (a Commands) formValue(ctx context.Context, c *ucli.Context, e *engine.Engine, at protocol.StepOutput) (any, error) {
	schema := at.Question.Schema
	if len(c.StringSlice("set")) == 0 && !c.IsSet("file") {
		return a.askForm(ctx, e, at)
	}
	value := map[string]any{}
	if c.IsSet("file") {
		var err error
		if value, err = a.mappingIn(c.String("file"), "the answer"); err != nil {
			return nil, err
		}
	}
	known := fieldNames(schema, value)
	for _, set := range c.StringSlice("set") {
		name, text, ok := strings.Cut(set, "=")
		if !ok || name == "" {
			hint := "--set " + plaintext.Word(name+"=VALUE")
			if name == "" { // "$status=x" in double quotes
				hint = "a shell keeps a $ in single quotes: --set '$status=VALUE'"
			}
			return nil, cmdline.UsageError(fmt.Sprintf("--set %s: want NAME=VALUE", plaintext.Word(set)), hint)
		}
		field, ok := formfields.Named(schema, name)
		if !ok && len(known) > 0 && !slices.Contains(known, name) {
			return nil, cmdline.UsageError(fmt.Sprintf("role %q has no field %q", at.Question.Role, name), cmdline.Choices("--set ", name, known)...)
		}
		text, err := a.valueText(text)
		if err != nil {
			return nil, err
		}
		if value[name], err = field.Value(text); err != nil {
			return nil, cmdline.Invalid(fmt.Sprintf("the answer does not match its schema:\n- %s: %v", name, err))
		}
	}
	return value, nil
}

// fieldNames returns the fields that a schema names, given some values.
func fieldNames(schema any, given map[string]any) []string {
	var names []string
	add := func(given map[string]any) {
		for _, f := range formfields.Fields(schema, given, protocol.StatusKey) {
			if !slices.Contains(names, f.Name) {
				names = append(names, f.Name)
			}
		}
	}
	add(given)
	for _, f := range formfields.Fields(schema, given, protocol.StatusKey) {
		for _, choice := range f.Choices {
			with := maps.Clone(given)
			with[f.Name] = choice
			add(with)
		}
	}
	return names
}

// askForm asks the user field by field. The fields depend on earlier answers, because each variant has its
// own.
func (a Commands) askForm(ctx context.Context, e *engine.Engine, at protocol.StepOutput) (any, error) {
	q := at.Question
	if !terminal.Is(a.Env.Stdin) {
		can, err := e.Reader.Actions(ctx, at.Thread)
		if err != nil || len(can) == 0 {
			return nil, err
		}
		return nil, cmdline.UsageError(fmt.Sprintf("thread %s waits for an answer: %s asks: %s", at.Thread, q.Role, q.Text),
			hints.Command(a.WorksAt, can[0].Command...), hints.Command(a.WorksAt, "thread", "answer", at.Thread, "-f", "answer.yaml"))
	}
	term.PaintLine(a.Env.Stderr, a.Colour(a.Env.Stderr, terminal.Yellow), plaintext.Indent(fmt.Sprintf("? %s asks: %s", plaintext.Line(q.Role), q.Text)))
	value := map[string]any{}
	asked := map[string]bool{}
	for {
		fields := formfields.Fields(q.Schema, value, protocol.StatusKey)
		next := slices.IndexFunc(fields, func(f formfields.Field) bool { return !asked[f.Name] })
		if next < 0 {
			return value, nil
		}
		f := fields[next]
		asked[f.Name] = true
		v, given, err := a.askField(ctx, f)
		if err != nil {
			return nil, err
		}
		if given {
			value[f.Name] = v
		}
	}
}

// askField asks for one field until the input is valid. Empty input means no value if the field is optional.
func (a Commands) askField(ctx context.Context, f formfields.Field) (value any, given bool, err error) {
	question := plaintext.Line(f.Name)
	var notes []string
	if f.Description != "" {
		notes = append(notes, plaintext.Line(f.Description))
	}
	if len(f.Choices) > 0 {
		shown := slices.Clone(f.Choices)
		for i := range shown {
			if numbered(f.Choices) {
				shown[i] = fmt.Sprintf("%d %s", i+1, shown[i])
			}
		}
		notes = append(notes, plaintext.Line(strings.Join(shown, " | ")))
	} else if kind := f.Kind(); kind != "" && kind != "a text" {
		notes = append(notes, kind)
	}
	if f.Default != "" {
		notes = append(notes, "default: "+plaintext.Line(f.Default))
	} else if !f.Required {
		notes = append(notes, "optional")
	}
	if len(notes) > 0 {
		question += " (" + strings.Join(notes, "; ") + ")"
	}
	for {
		text, err := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, question+": ")
		if err != nil {
			return nil, false, err
		}
		if text == "" && !f.Required {
			return nil, false, nil
		}
		if n, err := strconv.Atoi(text); err == nil && numbered(f.Choices) && n >= 1 && n <= len(f.Choices) {
			text = f.Choices[n-1]
		}
		if len(f.Choices) > 0 && !slices.Contains(f.Choices, text) {
			a.Messagef("  one of %s", plaintext.Line(strings.Join(f.Choices, ", ")))
			continue
		}
		if value, err = f.Value(text); err == nil {
			return value, true, nil
		}
		a.Messagef("  %s", plaintext.Line(err.Error()))
	}
}

// numbered reports whether choices can be selected by number, which requires that none of them is a number.
func numbered(choices []string) bool {
	return !slices.ContainsFunc(choices, func(c string) bool { _, err := strconv.Atoi(c); return err == nil })
}

// valueText returns a value from the command line: a text, or the content of a file after @. A text that
// begins with @ is written with @@.
func (a Commands) valueText(value string) (string, error) {
	name, isFile := strings.CutPrefix(value, "@")
	if !isFile || strings.HasPrefix(name, "@") {
		return name, nil
	}
	return a.fileText(name, "to start a text with @, type it twice: "+plaintext.Word("@"+value))
}

// mappingIn reads a mapping from a YAML or JSON file, or from stdin for "-".
func (a Commands) mappingIn(path, what string) (map[string]any, error) {
	text, err := "", error(nil)
	if path == "-" {
		text, err = a.OrStdin(path)
	} else {
		text, err = a.fileText(path)
	}
	if err != nil {
		return nil, err
	}
	doc, err := yamldoc.ParseAnswer([]byte(text), yamldoc.Bounds{})
	if err == nil {
		if bad := doc.Root.Rounded(); bad != nil {
			err = bad
		}
	}
	if err != nil {
		return nil, cmdline.Invalid(fmt.Sprintf("cannot parse %s in %s: %v", what, path, err))
	}
	value, ok := doc.Root.Value().(map[string]any)
	if !ok {
		return nil, cmdline.Invalid(fmt.Sprintf("%s in %s is not a mapping from name to value", what, path))
	}
	return value, nil
}

// fileText reads a text file given as a value.
func (a Commands) fileText(name string, hints ...string) (string, error) {
	data, err := safeopen.ReadFile(a.Env.Path(name), maxPrompt, safeopen.Follow)
	switch {
	case name == "":
		return "", cmdline.UsageError("missing file name after @", append(hints, "@task.md")...)
	case errors.Is(err, fs.ErrNotExist):
		return "", cmdline.NoFile(a.Env.Dir, name, hints...)
	case err != nil:
		return "", cmdline.Invalid("cannot read "+plaintext.Line(name)+": "+err.Error(), hints...)
	case !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0:
		return "", cmdline.Invalid(plaintext.Line(name)+" is not a text file", hints...)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// answerer returns the author of an answer, and how that is known: --as, or the user of this machine.
func (a Commands) answerer(ctx context.Context, c *ucli.Context) (string, error) {
	if c.IsSet("as") {
		name := strings.TrimSpace(c.String("as"))
		if name == "" {
			return "", cmdline.UsageError("--as is empty", "--as 'Ada Lovelace'")
		}
		return name + " (--as)", nil
	}
	return host.Person(ctx, a.Env), nil
}

// varFlags returns the flags for a run's inputs.
func varFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringSliceFlag{Name: "var", Usage: "`NAME=VALUE` set an input of the workflow; NAME=@FILE reads a file"},
		&ucli.StringFlag{Name: "vars", Usage: "`FILE` inputs as YAML or JSON; - reads stdin; --var overrides it"},
	}
}

// givenInputs returns the inputs from the flags, converted to their schemas.
func (a Commands) givenInputs(c *ucli.Context, declared map[string]inputs.Declared) (map[string]any, error) {
	given := map[string]any{}
	if c.IsSet("vars") {
		var err error
		if given, err = a.mappingIn(c.String("vars"), "the inputs"); err != nil {
			return nil, err
		}
	}
	for _, v := range c.StringSlice("var") {
		name, text, ok := strings.Cut(v, "=")
		if !ok || name == "" {
			return nil, cmdline.UsageError(fmt.Sprintf("--var %s: missing value (want NAME=VALUE)", plaintext.Word(v)), "--var "+plaintext.Word(name+"=VALUE"))
		}
		text, err := a.valueText(text)
		if err != nil {
			return nil, err
		}
		if given[name], err = formfields.Of(declared[name].Schema).Value(text); err != nil {
			return nil, cmdline.Invalid(fmt.Sprintf("invalid inputs:\n- %s: %v", plaintext.Line(name), err),
				"--var "+plaintext.Word(name+"=VALUE"))
		}
	}
	return given, nil
}

// complete sets the inputs of a thread that is about to start.
func (a Commands) complete(ctx context.Context, c *ucli.Context, e *engine.Engine, s *protocol.Start) error {
	w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, s.Workflow)
	if err != nil {
		return err
	}
	declared, err := engine.Declared(ctx, e.Reader.Store, w)
	if err != nil {
		return err
	}
	s.Inputs, err = a.inputs(ctx, c, declared)
	return err
}

// inputs returns the inputs of a run, validated and complete.
func (a Commands) inputs(ctx context.Context, c *ucli.Context, declared map[string]inputs.Declared) (map[string]any, error) {
	given, err := a.givenInputs(c, declared)
	if err != nil {
		return nil, err
	}
	return inputs.Fill(ctx, declared, given)
}

// VarValues completes --var with the inputs of the typed workflow.
func (a Commands) VarValues(ctx context.Context, typed []string) []cmdline.Candidate {
	var all []cmdline.Candidate
	def, err := a.Workflows().Definition(ctx, argumentOf(typed, "run", "start"))
	if err != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(def.Inputs)) {
		all = append(all, cmdline.Candidate{Word: name + "=", Help: def.Inputs[name].Description})
	}
	return all
}

// SetValues completes --set with the fields that the thread asks for.
func (a Commands) SetValues(ctx context.Context, typed []string) []cmdline.Candidate {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil
	}
	id, err := a.Thread(ctx, argumentOf(typed, "answer"))
	if err != nil {
		return nil
	}
	at, err := e.Reader.Show(ctx, id)
	if err != nil || at.Question == nil {
		return nil
	}
	var all []cmdline.Candidate
	for _, name := range fieldNames(at.Question.Schema, map[string]any{}) {
		f, _ := formfields.Named(at.Question.Schema, name)
		if len(f.Choices) == 0 {
			all = append(all, cmdline.Candidate{Word: name + "=", Help: f.Description})
		}
		for _, choice := range f.Choices {
			all = append(all, cmdline.Candidate{Word: name + "=" + choice, Help: f.Description})
		}
	}
	return all
}

// argumentOf returns the word after any of the commands, or "".
func argumentOf(typed []string, commands ...string) string {
	for i, word := range typed[:max(0, len(typed)-1)] {
		if slices.Contains(commands, word) && !strings.HasPrefix(typed[i+1], "-") {
			return typed[i+1]
		}
	}
	return ""
}

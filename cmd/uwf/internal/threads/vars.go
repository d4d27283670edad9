package threads

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/form"
	"github.com/united-workforce/uwf/util/plaintext"
)

// varFlags are those that give a run its inputs.
func varFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringSliceFlag{Name: "var", Usage: "an input of the workflow, as `NAME=VALUE`; NAME=@FILE reads it from a file; can be repeated"},
		&ucli.StringFlag{Name: "vars", Usage: "inputs, a mapping in the YAML or JSON `FILE`; - reads stdin; --var goes before it"},
	}
}

// givenInputs are the inputs that the flags give, as values of their schemas.
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
			return nil, cmdline.UsageError(fmt.Sprintf("--var %s names no value", plaintext.Word(v)), "--var "+plaintext.Word(name+"=VALUE"))
		}
		text, err := a.valueText(text)
		if err != nil {
			return nil, err
		}
		if given[name], err = form.Of(declared[name].Schema).Value(text); err != nil {
			return nil, cmdline.Invalid(fmt.Sprintf("the inputs do not fit:\n- %s: %v", plaintext.Line(name), err))
		}
	}
	return given, nil
}

// complete gives a thread that is about to start its inputs.
func (a Commands) complete(ctx context.Context, c *ucli.Context, e *engine.Engine, s *protocol.Start) error {
	w, err := cas.Read[protocol.Workflow](ctx, e.Store, s.Workflow)
	if err != nil {
		return err
	}
	declared, err := engine.Declared(ctx, e.Store, w)
	if err != nil {
		return err
	}
	s.Inputs, err = a.inputs(ctx, c, declared)
	return err
}

// inputs are those of a run, checked and complete.
func (a Commands) inputs(ctx context.Context, c *ucli.Context, declared map[string]inputs.Declared) (map[string]any, error) {
	given, err := a.givenInputs(c, declared)
	if err != nil {
		return nil, err
	}
	return inputs.Fill(ctx, declared, given)
}

// declaredBy are the inputs of a workflow that is not stored.
func declaredBy(def workflow.Definition) map[string]inputs.Declared {
	declared := map[string]inputs.Declared{}
	for name, i := range def.Inputs {
		declared[name] = inputs.Declared{Schema: def.InputSchemas[name], Default: i.Default, Description: i.Description}
	}
	return declared
}

// VarValues completes --var: the inputs of the workflow that is typed.
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

// SetValues completes --set: the fields that the thread asks for.
func (a Commands) SetValues(ctx context.Context, typed []string) []cmdline.Candidate {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return nil
	}
	id, err := a.Thread(ctx, argumentOf(typed, "answer"))
	if err != nil {
		return nil
	}
	at, err := e.Show(ctx, id)
	if err != nil || at.Question == nil {
		return nil
	}
	var all []cmdline.Candidate
	for _, name := range fieldNames(at.Question.Schema, map[string]any{}) {
		f, _ := form.Named(at.Question.Schema, name)
		if len(f.Choices) == 0 {
			all = append(all, cmdline.Candidate{Word: name + "=", Help: f.Description})
		}
		for _, choice := range f.Choices {
			all = append(all, cmdline.Candidate{Word: name + "=" + choice, Help: f.Description})
		}
	}
	return all
}

// argumentOf is the word that follows one of some commands, "" if there is none.
func argumentOf(typed []string, commands ...string) string {
	for i, word := range typed[:max(0, len(typed)-1)] {
		if slices.Contains(commands, word) && !strings.HasPrefix(typed[i+1], "-") {
			return typed[i+1]
		}
	}
	return ""
}

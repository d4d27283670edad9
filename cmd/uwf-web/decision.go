package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
	fields "github.com/united-workforce/uwf/util/formfields"
)

// choice is one of a few answers to a question.
type choice struct {
	Value, Label string
	Fields       []field // to fill in with it; nil if it needs none
}

// fieldOf returns a field for display.
func fieldOf(f fields.Field) field {
	note := htmlpage.Line(f.Description, 500)
	if kind := f.Kind(); kind != "" && len(f.Choices) == 0 && kind != "a text" {
		note = strings.TrimSpace(note + " (" + kind + ")")
	}
	if f.Default != "" {
		note = strings.TrimSpace(note + " Default: " + htmlpage.Line(f.Default, htmlpage.Longest))
	}
	label := htmlpage.Line(f.Name, htmlpage.Longest)
	if f.Name == protocol.StatusKey {
		label = "Decision"
	}
	return field{
		Name: f.Name, Post: "field." + f.Name, Label: label, Note: note, Choices: f.Choices,
		Required: f.Required, Long: len(f.Choices) == 0 && (len(f.Types) == 0 || slices.Contains(f.Types, "string")),
	}
}

// choose sets the choices of a form, if they are few enough for buttons.
func (f *form) choose(schema any) {
	const most = 3
	of := slices.IndexFunc(f.Fields, func(x field) bool {
		return x.Required && 0 < len(x.Choices) && (x.Name == protocol.StatusKey || len(f.Fields) == 1)
	})
	if of < 0 || len(f.Fields[of].Choices) > most {
		return
	}
	f.ChoiceOf = f.Fields[of].Name
	for _, value := range f.Fields[of].Choices {
		c, needed := choice{Value: value, Label: htmlpage.Line(value, htmlpage.Longest)}, false
		for _, other := range fields.Fields(schema, map[string]any{f.ChoiceOf: value}, protocol.StatusKey) {
			if other.Name != f.ChoiceOf {
				c.Fields, needed = append(c.Fields, fieldOf(other)), needed || other.Required
			}
		}
		if !needed {
			for _, optional := range c.Fields {
				if !slices.ContainsFunc(f.Optional, func(o field) bool { return o.Name == optional.Name }) {
					f.Optional = append(f.Optional, optional)
				}
			}
			c.Fields = nil
		}
		f.Choices = append(f.Choices, c)
	}
}

// identify names the elements of a form on its page.
func (f *form) identify(prefix string) {
	f.ID = prefix
	name := func(all []field, part string) {
		for i := range all {
			all[i].ID = prefix + part + "field-" + strconv.Itoa(i)
		}
	}
	name(f.Fields, "")
	name(f.Optional, "optional-")
	for i, c := range f.Choices {
		name(c.Fields, strconv.Itoa(i)+"-")
	}
}

// subjects is the maximum number of cards that show what the question is about. Files are read from git.
const subjects = 20

// subject is what a question is about.
type subject struct {
	Step   *htmlpage.Step // the last answer of an agent; nil if there is none
	Checks []check        // results of commands after it
	Files  *htmlpage.ChangedFiles
}

// check is the result of a command.
type check struct{ Role, Status, Mood string }

// subjectOf reads what a question is about: the steps since a person last answered. It returns nil if there
// are none.
func (s *server) subjectOf(ctx context.Context, it view.Waiting) *subject {
	const (
		longest = 2 << 10 // bytes
		most    = 20      // steps
	)
	if it.Question == nil {
		return nil
	}
	chain, err := htmlpage.ChainUpTo(ctx, s.engine, it.At.Head, most)
	if err != nil || len(chain.Steps) == 0 {
		return nil // the thread's page reports it
	}
	c, from := &subject{}, len(chain.Steps)
	workflow, _ := cas.Read[protocol.Workflow](ctx, s.engine.Reader.Store, it.At.Workflow) // the thread's page reports it
	shown := chain.Shown(ctx, s.engine, htmlpage.Bounds{Text: longest})
	for from > 0 && shown[from-1].By == "" {
		from--
		step := shown[from]
		switch {
		case c.Step != nil:
		case chain.Steps[from].Agent == protocol.CommandAgent:
			c.Checks = slices.Insert(c.Checks, 0, check{Role: step.Role, Status: step.Status,
				Mood: htmlpage.CommandMood(workflow, chain.Steps[from].Role, step.Status)})
		case step.Role == it.Question.Role:
			return nil // its own question
		default:
			step.Link = s.link("thread", it.At.Thread, "step", string(step.Hash))
			c.Step = &step
		}
	}
	if from < len(chain.Steps) {
		first, last := chain.Steps[from], chain.Steps[len(chain.Steps)-1]
		c.Files = s.files.of(string(first.Hash+" "+last.Hash), func() *htmlpage.ChangedFiles {
			return htmlpage.FilesOver(ctx, s.engine, first, last, true)
		})
	}
	return c
}

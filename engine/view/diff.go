package view

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Diff is the comparison of two threads. They diverge at the first step with a different prompt, player or
// output. Differences in time or cost don't count.
type Diff struct {
	Equal   bool     `json:"equal"`  // same start and steps, apart from time and cost
	Shared  int      `json:"shared"` // number of steps with identical nodes
	Same    int      `json:"same"`   // number of equal steps from the start, including the shared ones
	At      *int     `json:"at"`     // number of the first different step, from 1; 0 means the start, null means none
	Changes []Change `json:"changes"`
	Rest    []pair   `json:"rest"` // all later steps
}

// Change is a field that differs. It is null on the side that doesn't have it.
type Change struct {
	Field string `json:"field"`
	Old   any    `json:"old"`
	New   any    `json:"new"`
}

// pair holds the steps of both threads with the same number; a missing step is null.
type pair struct {
	Number int    `json:"number"`
	Old    *Brief `json:"old"`
	New    *Brief `json:"new"`
}

// Brief is a summary of a step.
type Brief struct {
	Hash   protocol.Hash `json:"hash"`
	Role   string        `json:"role"`
	Output any           `json:"output"`
}

// Compare compares the threads with two heads. If a node is missing, the error wraps cas.ErrNotFound.
func Compare(ctx context.Context, r cas.Reader, before, after protocol.Hash) (Diff, error) {
	d := Diff{Changes: []Change{}, Rest: []pair{}}
	a, err := open(ctx, r, before)
	if err != nil {
		return d, err
	}
	b, err := open(ctx, r, after)
	if err != nil {
		return d, err
	}
	for d.Shared < min(len(a.steps), len(b.steps)) && a.steps[d.Shared].Hash == b.steps[d.Shared].Hash {
		d.Shared++
	}
	d.Same = d.Shared
	if changes := startChanges(a.Start, b.Start); len(changes) > 0 {
		d.At, d.Changes = new(int), changes
	}
	for i := d.Shared; i < max(len(a.steps), len(b.steps)); i++ {
		x, err := a.step(ctx, i)
		if err != nil {
			return d, err
		}
		y, err := b.step(ctx, i)
		if err != nil {
			return d, err
		}
		d.add(i+1, x, y)
	}
	d.Equal = d.At == nil
	return d, nil
}

// add compares two steps with the same number; one of them can be nil.
func (d *Diff) add(number int, x, y *delivered) {
	if d.At != nil {
		d.Rest = append(d.Rest, pair{Number: number, Old: x.brief(), New: y.brief()})
	} else if changes := stepChanges(x, y); len(changes) > 0 {
		d.At, d.Changes = &number, changes
	} else {
		d.Same++
	}
}

// side is one of the compared threads.
type side struct {
	*thread.Thread
	r     cas.Reader
	steps []thread.Step // oldest first
}

func open(ctx context.Context, r cas.Reader, head protocol.Hash) (side, error) {
	t, err := thread.Open(ctx, r, head)
	if err != nil {
		return side{}, err
	}
	s := side{Thread: t, r: r}
	for step, err := range t.Steps(ctx) {
		if err != nil {
			return s, err
		}
		s.steps = append(s.steps, step)
	}
	slices.Reverse(s.steps)
	return s, nil
}

type delivered struct {
	thread.Step
	output any
	answer string
}

// step returns the ith step with its output, or nil after the last.
func (s side) step(ctx context.Context, i int) (*delivered, error) {
	if i >= len(s.steps) {
		return nil, nil
	}
	d := &delivered{Step: s.steps[i]}
	out, err := s.Shown(ctx, d.Step)
	if err != nil {
		return nil, err
	}
	d.output = out.Value
	d.answer, err = thread.Content(ctx, s.r, d.Detail)
	return d, err
}

func (d *delivered) brief() *Brief {
	if d == nil {
		return nil
	}
	return &Brief{Hash: d.Hash, Role: d.Role, Output: d.output}
}

// fieldStep is the field of the only change if one of the threads doesn't have the step.
const fieldStep = "step"

// startChanges compares the start nodes of two threads.
func startChanges(a, b protocol.Start) []Change {
	var c changes
	c.add("workflow", a.Workflow, b.Workflow)
	c.add("task", a.Prompt, b.Prompt)
	c.add("directory", a.Cwd, b.Cwd)
	return c
}

// stepChanges compares two steps, apart from time and cost.
func stepChanges(a, b *delivered) []Change {
	switch {
	case a == nil:
		return []Change{{Field: fieldStep, New: b.Role}}
	case b == nil:
		return []Change{{Field: fieldStep, Old: a.Role}}
	}
	var c changes
	c.add("role", a.Role, b.Role)
	c.add("agent", a.Agent, b.Agent)
	c.add("prompt", a.EdgePrompt, b.EdgePrompt)
	if within(a.Root, a.Cwd) != within(b.Root, b.Cwd) {
		c.add("directory", a.Cwd, b.Cwd)
	}
	c.values("output", a.output, b.output)
	c.add("answer", a.answer, b.answer)
	return c
}

// within returns a directory relative to the root of its work tree, or the directory itself if it is not in
// one.
func within(root, dir string) string {
	rel, err := filepath.Rel(root, dir)
	if root == "" || err != nil || !filepath.IsLocal(rel) {
		return dir
	}
	return rel
}

type changes []Change

func (c *changes) add(field string, old, new any) {
	if !reflect.DeepEqual(old, new) {
		*c = append(*c, Change{Field: field, Old: old, New: new})
	}
}

// values compares JSON values down to the fields that differ.
func (c *changes) values(path string, old, new any) {
	switch a := old.(type) {
	case map[string]any:
		if b, ok := new.(map[string]any); ok {
			keys := maps.Clone(a)
			maps.Copy(keys, b)
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				c.values(path+"."+key, a[key], b[key])
			}
			return
		}
	case []any:
		if b, ok := new.([]any); ok && len(a) == len(b) {
			for i := range a {
				c.values(fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
			}
			return
		}
	}
	c.add(path, old, new)
}

// DiffText formats a diff as text.
func DiffText(d Diff) string {
	var b strings.Builder
	if d.Shared > 0 {
		fmt.Fprintf(&b, "  %s in common\n", render.Count(d.Shared, "step"))
	}
	if more := d.Same - d.Shared; more > 0 {
		fmt.Fprintf(&b, "  %s done again, with the same result\n", render.Count(more, "step"))
	}
	if d.At == nil {
		return b.String()
	}
	at := fmt.Sprintf("step %d", *d.At)
	if *d.At == 0 {
		at = "the start"
	}
	if c := d.Changes[0]; c.Field == fieldStep {
		fmt.Fprintf(&b, "%s %s: %s\n", mark(c), at, words(cmp.Or(c.Old, c.New)))
	} else {
		fmt.Fprintf(&b, "~ %s\n", at)
		for _, c := range d.Changes {
			fmt.Fprintf(&b, "  %s %s\n", mark(c), c.Field)
			for _, line := range workflowdiff.Lines(words(c.Old), words(c.New)) {
				fmt.Fprintf(&b, "      %s\n", line)
			}
		}
	}
	for _, p := range d.Rest {
		text := p.Old.text() + " in both"
		if p.Old.text() != p.New.text() {
			text = p.Old.text() + " | " + p.New.text()
		}
		fmt.Fprintf(&b, "  step %d: %s\n", p.Number, text)
	}
	return b.String()
}

func mark(c Change) string {
	switch {
	case c.Old == nil:
		return "+"
	case c.New == nil:
		return "-"
	}
	return "~"
}

func (s *Brief) text() string {
	if s == nil {
		return "(none)"
	}
	text := s.Role
	if m, ok := s.Output.(map[string]any); ok {
		if status, ok := m[protocol.StatusKey].(string); ok {
			text += " " + status
		}
	}
	return plaintext.Line(text)
}

// words returns the lines of a value: a string as it is, anything else as JSON.
func words(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil { // impossible: all values come from JSON
		return fmt.Sprint(v)
	}
	return string(text)
}

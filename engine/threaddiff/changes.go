package threaddiff

import (
	"context"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/protocol"
)

// fieldStep names the only change of a step that one of two threads does not have.
const fieldStep = "step"

// startChanges compares what two threads began with.
func startChanges(a, b protocol.Start) []Change {
	var c changes
	c.add("workflow", a.Workflow, b.Workflow)
	c.add("task", a.Prompt, b.Prompt)
	c.add("directory", a.Cwd, b.Cwd)
	return c
}

// stepChanges compares the ith steps of two tails; nil if they are the same in
// substance.
func stepChanges(ctx context.Context, x, y *side, i int) ([]Change, error) {
	a, err := x.step(ctx, i)
	if err != nil {
		return nil, err
	}
	b, err := y.step(ctx, i)
	if err != nil {
		return nil, err
	}
	switch {
	case a == nil:
		return []Change{{Field: fieldStep, New: b.Role}}, nil
	case b == nil:
		return []Change{{Field: fieldStep, Old: a.Role}}, nil
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
	if len(c) == 0 {
		return nil, nil
	}
	c.add("extractedBy", string(a.ExtractedBy), string(b.ExtractedBy))
	c.add("durationMs", a.CompletedAtMs-a.StartedAtMs, b.CompletedAtMs-b.StartedAtMs)
	c.usage(a.Usage, b.Usage)
	return c, nil
}

// within is a directory as it is in its work tree, wherever that is; the directory
// itself if it is in none.
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

// values compares JSON values, down to the fields that differ.
func (c *changes) values(path string, old, new any) {
	switch a := old.(type) {
	case map[string]any:
		b, ok := new.(map[string]any)
		if !ok {
			break
		}
		keys := maps.Clone(a)
		maps.Copy(keys, b)
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			c.values(path+"."+key, a[key], b[key])
		}
		return
	case []any:
		b, ok := new.([]any)
		if !ok || len(a) != len(b) {
			break
		}
		for i := range a {
			c.values(path+"["+strconv.Itoa(i)+"]", a[i], b[i])
		}
		return
	}
	c.add(path, old, new)
}

// usage compares what two steps cost; what is unknown is null.
func (c *changes) usage(a, b *protocol.Usage) {
	c.add("inputTokens", tokens(a, input), tokens(b, input))
	c.add("outputTokens", tokens(a, output), tokens(b, output))
}

func tokens(u *protocol.Usage, of func(protocol.Usage) int64) any {
	if !u.Counted() {
		return nil
	}
	return of(*u)
}

func input(u protocol.Usage) int64  { return u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens }
func output(u protocol.Usage) int64 { return u.OutputTokens }

package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// family is where the children stand that play a role together.
type family struct {
	engine.StepInfo // the step that will join them
	since           time.Time
	stand           map[string]protocol.Status // by key
}

// Children implements engine.Progress.
func (v *Display) Children(of engine.StepInfo, stand []protocol.ChildOutput) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f := v.families[of.Path]
	if f == nil || f.Number != of.Number || f.Thread != of.Thread {
		f = &family{StepInfo: of, since: v.now(), stand: map[string]protocol.Status{}}
		if v.families == nil {
			v.families = map[string]*family{}
		}
		v.families[of.Path] = f
	}
	for _, c := range stand {
		f.stand[c.Key] = c.Status
	}
	v.changed = true
}

// rests notes where a thread stands after a step.
func (v *Display) rests(s engine.StepInfo, at protocol.Status) {
	delete(v.families, s.Path) // its children are joined
	parent, key := cutPath(s.Path)
	if f := v.families[parent]; f != nil && s.Path != "" {
		f.stand[key] = at
	}
}

// joined counts the children that a step has joined; "": there was nothing to count.
func (v *Display) joined(s engine.StepInfo) string {
	f := v.families[s.Path]
	if f == nil || f.Number != s.Number || len(f.stand) < 2 {
		return ""
	}
	return v.counted(f)
}

// cutPath takes the last key off a path.
func cutPath(path string) (parent, key string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// branch is a line of the tree of what is at work.
type branch struct {
	depth      int
	name, text string
	leaf       bool // a step; else children, counted
}

// tree is what is at work, in at most so many lines. Those next to the root have them
// first; the other steps are counted.
func (v *Display) tree(most int) []string {
	var all []branch
	for _, s := range v.steps {
		if s.Path == "" {
			all = append(all, branch{text: v.counting(s), leaf: true})
		}
	}
	all = v.grow(all, "", 0)
	kept, left := all, 0
	if len(all) > most {
		byDepth := make([]int, len(all))
		for i := range all {
			byDepth[i] = i
		}
		slices.SortStableFunc(byDepth, func(a, b int) int { return cmp.Compare(all[a].depth, all[b].depth) })
		byDepth = byDepth[:max(most-1, 1)]
		slices.Sort(byDepth)
		kept = nil
		for _, i := range byDepth {
			kept = append(kept, all[i])
		}
		left = leaves(all) - leaves(kept)
	}
	lines := v.aligned(kept)
	if left > 0 && len(lines) < most {
		lines = append(lines, fmt.Sprintf("  … and %d more at work", left))
	}
	return lines
}

func leaves(all []branch) (n int) {
	for _, b := range all {
		if b.leaf {
			n++
		}
	}
	return n
}

// grow adds what is at work below a path.
func (v *Display) grow(all []branch, path string, depth int) []branch {
	if f := v.families[path]; f != nil {
		b := branch{depth: depth, text: plaintext.Line(f.Role) + " · " + v.counted(f) + " · " + v.since(f.since)}
		if path != "" {
			_, b.name = cutPath(cmp.Or(f.Label, path))
		}
		all = append(all, b)
		depth++
	}
	seen := map[string]bool{}
	for _, s := range v.steps {
		child := childBelow(path, s.Path)
		if child == "" || seen[child] {
			continue
		}
		seen[child] = true
		if child != s.Path {
			all = v.grow(all, child, depth)
			continue
		}
		_, name := cutPath(cmp.Or(s.Label, s.Path))
		text := v.since(s.Started)
		if v.roles() > 1 {
			text = plaintext.Line(s.Role) + " " + text
		}
		if s.writing != "" {
			text += " · " + s.writing
		}
		all = append(all, branch{depth: depth, name: name, text: text, leaf: true})
	}
	return all
}

// roles is how many different roles children play at the moment.
func (v *Display) roles() int {
	roles := map[string]bool{}
	for _, s := range v.steps {
		if s.Path != "" {
			roles[s.Role] = true
		}
	}
	return len(roles)
}

// childBelow is the path of the child of path that a path leads to or through; "": none.
func childBelow(path, to string) string {
	rest := to
	if path != "" {
		var below bool
		if rest, below = strings.CutPrefix(to, path+"/"); !below {
			return ""
		}
	}
	key, _, _ := strings.Cut(rest, "/")
	return to[:len(to)-len(rest)+len(key)]
}

// aligned are branches as lines, the names of those of one depth in a column.
func (v *Display) aligned(all []branch) []string {
	columns, _ := v.size()
	most := max(8, cmp.Or(columns, 80)*2/5)
	wide := map[int]int{}
	for i := range all {
		b := &all[i]
		b.name = diagram.Cut(plaintext.Line(b.name), most)
		if b.leaf {
			wide[b.depth] = max(wide[b.depth], diagram.Columns(b.name))
		}
	}
	lines := make([]string, len(all))
	for i, b := range all {
		if b.name != "" {
			b.name += strings.Repeat(" ", max(0, wide[b.depth]-diagram.Columns(b.name))) + "  "
		}
		lines[i] = strings.Repeat("  ", b.depth) + "  " + b.name + b.text
	}
	return lines
}

// counted says how many children there are, and where they stand.
func (v *Display) counted(f *family) string {
	atWork := map[string]bool{}
	for _, s := range v.steps {
		if child := childBelow(f.Path, s.Path); child != "" {
			_, key := cutPath(child)
			atWork[key] = true
		}
	}
	var done, failed, asks, limited, busy, left int
	for key, at := range f.stand {
		switch {
		case atWork[key]:
			busy++
		case at == protocol.StatusCompleted:
			done++
		case at == protocol.StatusError, at == protocol.StatusCorrupt, at == protocol.StatusCancelled:
			failed++
		case at == protocol.StatusSuspended:
			asks++
		case at == protocol.StatusRateLimited:
			limited++
		default:
			left++
		}
	}
	words := []string{fmt.Sprintf("%d of %d done", done, len(f.stand))}
	for _, more := range []struct {
		n    int
		what string
	}{{failed, "failed"}, {asks, "waiting for you"}, {limited, "rate-limited"}, {busy, "at work"}, {left, "to come"}} {
		if more.n > 0 {
			words = append(words, fmt.Sprintf("%d %s", more.n, more.what))
		}
	}
	return strings.Join(words, ", ")
}

func (v *Display) since(at time.Time) string {
	return max(0, v.now().Sub(at)).Round(time.Second).String()
}

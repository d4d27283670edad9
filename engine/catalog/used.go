package catalog

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine/origin"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// maxUses bounds how deep workflows run others.
const maxUses = 10

// used is the workflow that a role of a file runs: by a path from that file, by a name or
// by a hash. A name is one of the project that the file is of, or of the registry: where
// the file is named from makes no other workflow of it. Nothing is stored. A file cannot
// run itself, in however many steps.
func (c *Catalog) used(ctx context.Context, name, by, project string) (workflow.Used, error) {
	none := workflow.Used{Name: name}
	if len(c.reading) == 0 {
		c.known = map[string]known{}
	}
	c.reading = append(c.reading, by)
	defer func() { c.reading = c.reading[:len(c.reading)-1] }()
	path := ""
	var found []workflow.Found
	switch {
	case protocol.Hash(name).Valid():
	case isPath(name):
		path = filepath.Join(filepath.Dir(by), filepath.FromSlash(name))
	default:
		var err error
		if found, err = c.projectOfDir(workflow.Around(by)); err != nil {
			return none, err
		}
		if i := slices.IndexFunc(found, func(f workflow.Found) bool { return f.Name == name }); i >= 0 {
			return c.once(ctx, name, found[i].Path, found[i].Project, func() (workflow.Definition, error) {
				def, _, err := c.readProject(ctx, found[i])
				return def, err
			})
		}
	}
	if path == "" { // what is stored cannot lead back to a file
		h, err := c.stored(ctx, name, found)
		if err != nil {
			return none, err
		}
		def, err := c.Stored(ctx, h)
		return workflow.Used{Name: name, Hash: h, Definition: def}, err
	}
	return c.once(ctx, name, path, project, func() (workflow.Definition, error) { return c.readIn(ctx, path, project) })
}

// known is a file that another one runs, and how deep others lie inside it.
type known struct {
	used  workflow.Used
	err   error
	below int
}

// once reads a file one time for all that run it: of a few files that all run each other,
// level by level, there would be no end.
func (c *Catalog) once(ctx context.Context, name, path, project string, read func() (workflow.Definition, error)) (workflow.Used, error) {
	if err := c.circle(path); err != nil {
		return workflow.Used{}, err
	}
	key := realPath(path) + "\n" + project
	file, ok := c.known[key]
	if !ok && len(c.reading) <= maxUses {
		outside := c.below
		c.below = 0
		def, err := read()
		file.used, file.err = c.hashed(ctx, name, def, err)
		file.below, c.below = c.below, outside
		c.known[key] = file
	}
	if len(c.reading)+file.below > maxUses {
		return workflow.Used{}, invalid(fmt.Sprintf("workflows run others more than %d deep", maxUses))
	}
	c.below = max(c.below, file.below+1)
	file.used.Name = name
	return file.used, file.err
}

// circle is an error if a file is being read already.
func (c *Catalog) circle(path string) error {
	i := slices.IndexFunc(c.reading, func(p string) bool { return realPath(p) == realPath(path) })
	if i < 0 {
		return nil
	}
	var names []string
	for _, p := range append(slices.Clone(c.reading[i:]), path) {
		names = append(names, c.Shown(p))
	}
	return invalid("the workflows run each other in a circle: " + strings.Join(names, " → "))
}

// hashed adds the hash that a definition would be stored under.
func (c *Catalog) hashed(ctx context.Context, name string, def workflow.Definition, err error) (workflow.Used, error) {
	if err != nil {
		return workflow.Used{}, err
	}
	_, h, err := c.nodes(ctx, def)
	return workflow.Used{Name: name, Hash: h, Definition: def}, err
}

// UsedCommands are those of the workflows that a definition runs, a line each.
func UsedCommands(def workflow.Definition) []string {
	return usedCommands(def, map[protocol.Hash]bool{})
}

func usedCommands(def workflow.Definition, seen map[protocol.Hash]bool) []string {
	var lines []string
	for _, used := range def.Uses {
		if seen[used.Hash] {
			continue
		}
		seen[used.Hash] = true
		for _, line := range append(origin.CommandsOf(used.Definition.Workflow), usedCommands(used.Definition, seen)...) {
			lines = append(lines, plaintext.Line(used.Definition.Name)+": "+line)
		}
	}
	return lines
}

package catalog

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
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
	c.reading = append(c.reading, by)
	defer func() { c.reading = c.reading[:len(c.reading)-1] }()
	if len(c.reading) > maxUses {
		return none, invalid(fmt.Sprintf("workflows run others more than %d deep", maxUses))
	}
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
			if err := c.circle(found[i].Path); err != nil {
				return none, err
			}
			def, _, err := c.readProject(ctx, found[i])
			return c.hashed(ctx, name, def, err)
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
	if err := c.circle(path); err != nil {
		return none, err
	}
	def, err := c.readIn(ctx, path, project)
	return c.hashed(ctx, name, def, err)
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
	var lines []string
	for _, used := range def.Uses {
		for _, line := range append(engine.CommandsOf(used.Definition.Workflow), UsedCommands(used.Definition)...) {
			lines = append(lines, plaintext.Line(used.Definition.Name)+": "+line)
		}
	}
	return lines
}

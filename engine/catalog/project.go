package catalog

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
)

// Project lists the project's workflows. What is ignored is said, once.
func (c *Catalog) Project() ([]workflow.Found, error) {
	return c.projectOfDir(c.Env.Dir)
}

// projectOfDir is [Catalog.Project] for any directory.
func (c *Catalog) projectOfDir(dir string) ([]workflow.Found, error) {
	if found, ok := c.projects[dir]; ok {
		return found, nil
	}
	found, ignored, err := workflow.Discover(project.From(c.Env, dir))
	if err != nil {
		return nil, fmt.Errorf("look for project workflows: %w", err)
	}
	if c.projects == nil {
		c.projects = map[string][]workflow.Found{}
	}
	c.projects[dir] = found
	for _, i := range ignored {
		c.note("ignored %s: it %s", plaintext.Line(c.Shown(i.Path)), i.Why)
	}
	return found, nil
}

// readProject reads a workflow of the project. If it hides a registered one, that is
// said each time: somebody else may have put it there.
func (c *Catalog) readProject(ctx context.Context, f workflow.Found) (def workflow.Definition, hides bool, err error) {
	if def, err = c.readIn(ctx, f.Path, f.Project); err != nil {
		return def, false, err
	}
	x, err := c.Registry()
	if err != nil {
		return def, false, err
	}
	registered, err := x.Workflow(ctx, f.Name)
	if err != nil {
		return def, false, nil // there is none, or whoever needs the registry will say what is wrong
	}
	if _, h, err := c.nodes(ctx, def); err != nil || h != registered {
		c.note("%s is %s, not the registered %s, which you can name by that hash", f.Name, plaintext.Line(c.Shown(f.Path)), registered)
		hides = true
	}
	return def, hides, nil
}

// realPath is a path without symbolic links, if it leads anywhere.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

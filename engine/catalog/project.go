package catalog

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// search is where the project's workflows are looked for from here, and whose
// count: this user's, the system's, and under sudo those of who typed it.
func (c *Catalog) search() workflow.Search {
	const system = 0
	me := os.Geteuid()
	s := workflow.Search{Dir: realPath(c.Env.Dir), Home: home.User(c.Env), Owner: careful.Owner, Users: []int{system, me},
		Shared: func(path string, info fs.FileInfo) bool { return careful.OthersWrite(info) && careful.Reachable(path) }}
	if id, err := strconv.Atoi(c.Env.Get("SUDO_UID")); err == nil && me == system {
		s.Users = append(s.Users, id)
	}
	return s
}

// Project lists the project's workflows. What is ignored is said, once.
func (c *Catalog) Project() ([]workflow.Found, error) {
	if c.searched {
		return c.project, nil
	}
	found, ignored, err := c.search().Discover()
	if err != nil {
		return nil, fmt.Errorf("look for project workflows: %w", err)
	}
	c.project, c.searched = found, true
	for _, i := range ignored {
		c.note("ignored %s: it %s", plaintext.Line(c.Shown(i.Path)), i.Why)
	}
	return found, nil
}

// readProject reads a workflow of the project. If it hides a registered one, that is
// said each time: somebody else may have put it there.
func (c *Catalog) readProject(ctx context.Context, f workflow.Found) (workflow.Definition, error) {
	def, err := c.readIn(ctx, f.Path, f.Project)
	if err != nil {
		return def, err
	}
	x, err := c.Registry()
	if err != nil {
		return def, err
	}
	registered, err := x.Workflow(ctx, f.Name)
	if err != nil {
		return def, nil // there is none, or whoever needs the registry will say what is wrong
	}
	if _, h, err := c.nodes(ctx, def); err != nil || h != registered {
		c.note("%s is %s, not the registered %s, which you can name by that hash", f.Name, plaintext.Line(c.Shown(f.Path)), registered)
	}
	return def, nil
}

// realPath is a path without symbolic links, if it leads anywhere.
func realPath(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

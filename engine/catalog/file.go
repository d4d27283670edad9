package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
)

// maxFile bounds what is read before the parser's own bounds apply, in bytes.
const maxFile = 16 << 20

// file is a file that was read.
type file struct {
	data []byte
	dir  *os.Root // of the file, opened through its project
}

// Read reads and checks the file that a person names. Errors name the file
// as the user would; what the author should know although nothing is wrong is noted
// here, once.
func (c *Catalog) Read(ctx context.Context, path string) (workflow.Definition, error) {
	if c.Fetch != nil {
		if text, name, ok, err := c.Fetch(ctx, path); ok || err != nil {
			if err != nil {
				return workflow.Definition{}, err
			}
			return c.parse(ctx, workflow.Source{File: path, Path: name, Data: text})
		}
	}
	path = c.Env.Path(path)
	project, err := c.projectOf(path)
	if err != nil {
		return workflow.Definition{}, err
	}
	return c.readIn(ctx, path, project)
}

// readIn is [Catalog.Read] for a file of a project.
func (c *Catalog) readIn(ctx context.Context, path, project string) (workflow.Definition, error) {
	file, err := c.open(path, project)
	if err != nil {
		return workflow.Definition{}, err
	}
	defer func() { _ = file.dir.Close() }() // opened for reading only
	if !isText(file.data) {
		return workflow.Definition{}, invalid(fmt.Sprintf("%s is not a text file, so it is not a workflow", c.Shown(path)), "uwf workflow new <name> writes one to begin with")
	}
	src := workflow.Source{File: c.Shown(path), Path: path, Dir: file.dir, Data: file.data}
	src.Workflow = func(name string) (workflow.Used, error) { return c.used(ctx, name, path, project) }
	return c.parse(ctx, src)
}

// parse reads a text, and says what the author should know.
func (c *Catalog) parse(ctx context.Context, src workflow.Source) (workflow.Definition, error) {
	src.Node = func(h protocol.Hash) (any, error) { return c.payload(ctx, h) }
	def, err := workflow.Parse(src)
	var problems *workflow.Problems
	if len(def.Notices) == 0 && !errors.As(err, &problems) {
		return def, err
	}
	secrets := c.Secrets()
	for _, notice := range def.Notices {
		c.note("%s", plaintext.Line(secrets.Hide(notice)))
	}
	if problems != nil {
		for i, p := range problems.List {
			p.Message, p.Excerpt, p.Remedy = secrets.Hide(p.Message), secrets.Hide(p.Excerpt), secrets.Hide(p.Remedy)
			problems.List[i] = p
		}
	}
	return def, err
}

// projectOf is the directory that the workflow file at a path must not lead out of:
// each repository in which the path lies, the nearest of them if it leads out of
// none; else the project of the directory in which the file really is.
func (c *Catalog) projectOf(path string) (string, error) {
	nearest := ""
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if within(dir, path) == "" {
				return dir, nil
			}
			nearest = cmp.Or(nearest, dir)
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	if nearest != "" {
		return nearest, nil
	}
	return project.From(c.Env, filepath.Dir(path)).Root()
}

// open reads a file of a project, without trusting that it is one.
func (c *Catalog) open(path, project string) (file, error) {
	var none file
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, notFound(fmt.Sprintf("file not found: %s", c.Shown(path)), c.nearFiles(path)...)
	case err != nil:
		if _, err := os.Stat(path); errors.Is(err, syscall.ELOOP) {
			return none, invalid(fmt.Sprintf("%s is a link that leads round in a circle, to no file", c.Shown(path)), "uwf workflow new <name> writes one to begin with")
		}
		return none, fmt.Errorf("follow the links of %s: %w", c.Shown(path), err)
	}
	name, dir := within(project, real), within(project, filepath.Dir(path))
	if name == "" || dir == "" {
		return none, invalid(fmt.Sprintf("%s is a link that leads out of %s, to %s", c.Shown(path), c.Shown(project), real),
			"to use that file, spell its name as it is there")
	}
	root, err := os.OpenRoot(project)
	if err != nil {
		return none, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	data, err := careful.ReadFileIn(root, name, maxFile)
	var odd *careful.NotFileError
	var big *careful.TooBigError
	switch {
	case errors.As(err, &odd) && odd.Mode.IsDir():
		return none, invalid(fmt.Sprintf("%s is a directory, not a workflow file", c.Shown(path)), "name the file in it: "+filepath.Join(c.Shown(path), "<name>.yaml"))
	case errors.As(err, &odd):
		odd.Path = c.Shown(path)
		return none, invalid(odd.Error()+", so it is not a workflow", "uwf workflow new <name> writes one to begin with")
	case errors.As(err, &big):
		return none, invalid(fmt.Sprintf("%s is too large for a workflow file (more than %d bytes)", c.Shown(path), big.Max))
	case err != nil:
		return none, err
	}
	from, err := root.OpenRoot(dir)
	return file{data, from}, err
}

// within is the path of what another path leads to, from a directory on; "" if that
// is not below it.
func within(dir, path string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	rest, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rest) {
		return ""
	}
	return rest
}

// isText reports whether a file may be a text: git looks at as much of it.
func isText(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return !bytes.ContainsRune(head, 0)
}

package cli

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
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/secret"
)

// A workflow file may be anybody's: it came with a repository, or a model wrote
// it. So it is read through its project, which no link leads out of; only if it is
// a file; and messages that quote it hold no secret of this user's.

// maxWorkflowFile bounds what is read before the parser's own bounds apply, in bytes.
const maxWorkflowFile = 16 << 20

// workflowFile is a file that was read.
type workflowFile struct {
	data []byte
	dir  *os.Root // of the file, opened through its project
}

// readWorkflow reads and checks the file that a person names. Errors name the file
// as the user would; what the author should know although nothing is wrong is said
// here, once.
func (a *app) readWorkflow(ctx context.Context, path string) (workflow.Definition, error) {
	project, err := a.projectOf(path)
	if err != nil {
		return workflow.Definition{}, err
	}
	return a.readWorkflowIn(ctx, path, project)
}

// readWorkflowIn is readWorkflow for a file of a project.
func (a *app) readWorkflowIn(ctx context.Context, path, project string) (workflow.Definition, error) {
	file, err := a.openWorkflow(path, project)
	if err != nil {
		return workflow.Definition{}, err
	}
	defer func() { _ = file.dir.Close() }() // opened for reading only
	if !isText(file.data) {
		return workflow.Definition{}, invalid(fmt.Sprintf("%s is not a text file, so it is no workflow", a.shown(path)), "uwf workflow new <name> writes one to begin with")
	}
	def, err := workflow.Parse(workflow.Source{
		File: a.shown(path), Path: path, Dir: file.dir, Data: file.data,
		Node: func(h protocol.Hash) (any, error) { return a.payload(ctx, h) },
	})
	var problems *workflow.Problems
	if len(def.Notices) == 0 && !errors.As(err, &problems) {
		return def, err
	}
	secrets := a.secrets()
	for _, notice := range def.Notices {
		a.say("note: %s", plaintext.Line(secrets.Hide(notice)))
	}
	if problems != nil {
		for i, p := range problems.List {
			p.Message, p.Excerpt, p.Remedy = secrets.Hide(p.Message), secrets.Hide(p.Excerpt), secrets.Hide(p.Remedy)
			problems.List[i] = p
		}
	}
	return def, err
}

// secrets are those of the home that is in force, as far as it has any.
func (a *app) secrets() *secret.Set {
	dirs, err := home.Find(a.env, a.flags.home, a.flags.store)
	if err != nil {
		return secret.NewSet()
	}
	return secret.NewSet(config.Secrets(dirs.Config(), dirs.DotEnv(), a.env)...)
}

// projectOf is the directory that the workflow file at a path must not lead out of:
// each repository in which the path lies, the nearest of them if it leads out of
// none; else the project of the directory in which the file really is.
func (a *app) projectOf(path string) (string, error) {
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
	s := a.search()
	s.Dir = realPath(filepath.Dir(path))
	return s.Project()
}

// openWorkflow reads a file of a project, without trusting that it is one.
func (a *app) openWorkflow(path, project string) (workflowFile, error) {
	var none workflowFile
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, notFound(fmt.Sprintf("file not found: %s", a.shown(path)), a.nearFiles(path)...)
	case err != nil:
		if _, err := os.Stat(path); errors.Is(err, syscall.ELOOP) {
			return none, invalid(fmt.Sprintf("%s is a link that leads round in a circle, to no file", a.shown(path)), "uwf workflow new <name> writes one to begin with")
		}
		return none, fmt.Errorf("follow the links of %s: %w", a.shown(path), err)
	}
	name, dir := within(project, real), within(project, filepath.Dir(path))
	if name == "" || dir == "" {
		return none, invalid(fmt.Sprintf("%s is a link that leads out of %s, to %s", a.shown(path), a.shown(project), real),
			"to use that file, spell its name as it is there")
	}
	root, err := os.OpenRoot(project)
	if err != nil {
		return none, err
	}
	defer func() { _ = root.Close() }() // opened for reading only
	data, err := careful.ReadFileIn(root, name, maxWorkflowFile)
	var odd *careful.NotFileError
	var big *careful.TooBigError
	switch {
	case errors.As(err, &odd) && odd.Mode.IsDir():
		return none, invalid(fmt.Sprintf("%s is a directory, not a workflow file", a.shown(path)), "name the file in it: "+filepath.Join(a.shown(path), "<name>.yaml"))
	case errors.As(err, &odd):
		odd.Path = a.shown(path)
		return none, invalid(odd.Error()+", so it is no workflow", "uwf workflow new <name> writes one to begin with")
	case errors.As(err, &big):
		return none, invalid(fmt.Sprintf("%s is too large for a workflow file (more than %d bytes)", a.shown(path), big.Max))
	case err != nil:
		return none, err
	}
	from, err := root.OpenRoot(dir)
	return workflowFile{data, from}, err
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

// isText tells whether a file may be a text: git looks at as much of it.
func isText(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return !bytes.ContainsRune(head, 0)
}

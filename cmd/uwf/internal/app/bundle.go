package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// bundled is a bundle that takes the place of the home and its store, for one
// command that only reads.
type bundled struct {
	file *bundle.File
	Path string // as it was typed
	name string // the same, if it was typed as an argument
	// home is a directory with the index of the bundle's threads, and nothing else.
	home string
}

// Reads lets a read-only command work on a bundle: on that of --bundle, or on one given as
// its argument.
func (a *App) Reads(c *ucli.Command) *ucli.Command {
	c.Flags = append(c.Flags, &ucli.StringFlag{Name: "bundle", Usage: "read from a bundle, a `FILE` made by thread export, instead of the store"})
	run := c.Action
	c.Action = func(cc *ucli.Context) (err error) {
		path, name := cc.String("bundle"), ""
		if path == "" {
			if name, _, _ = strings.Cut(cc.Args().First(), "@"); !a.isBundle(name) {
				return run(cc)
			}
			path = name
		}
		done, err := a.openBundle(cc.Context, path, name)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, done()) }()
		return run(cc)
	}
	return c
}

// isBundle reports whether an argument is a file that begins like a bundle.
func (a *App) isBundle(arg string) bool {
	if arg == "" {
		return false
	}
	f, err := os.Open(a.Env.Path(arg))
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // nothing was written
	start := make([]byte, bundle.Sniff)
	_, err = io.ReadFull(f, start)
	return err == nil && bundle.IsBundle(start)
}

// openBundle puts a bundle in the place of the home; done takes it away again. Its nodes
// are checked as they are read; that it is complete is not: that is what verify is
// for.
func (a *App) openBundle(ctx context.Context, path, name string) (done func() error, err error) {
	f, closeFile, err := ocascli.OpenBundle(ctx, a.Env, path)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "uwf-bundle-")
	if err != nil {
		return nil, errors.Join(err, closeFile())
	}
	a.Bundle = &bundled{file: f, Path: path, name: name, home: dir}
	done = func() error {
		a.Bundle = nil
		return errors.Join(closeFile(), os.RemoveAll(dir))
	}
	if err := fileheads.Open(dir, durable.OS()).Adopt(ctx, f.Adoptions(ctx), 0); err != nil {
		return nil, errors.Join(err, done())
	}
	return done, nil
}

// BundleFiles puts the files of a complete bundle in its temporary home, where the engine
// finds them; they are removed with it. Without a bundle it does nothing.
func (a *App) BundleFiles(ctx context.Context, e *engine.Engine) error {
	if a.Bundle == nil || len(a.Bundle.file.Manifest.Trees) == 0 {
		return nil
	}
	if _, err := a.Bundle.file.Check(ctx); err != nil {
		return ocascli.BundleError(a.Bundle.Path, err)
	}
	_, err := e.Files().KeepFiles(ctx, a.Bundle.file, map[string][]protocol.Tree{"bundle": a.Bundle.file.Manifest.Trees})
	return err
}

// NotInBundle turns the error that files are nowhere into one that says that the bundle
// does not have them.
func (a *App) NotInBundle(err error) error {
	var none *workspace.NoFilesError
	if a.Bundle == nil || !errors.As(err, &none) || !none.Gone {
		return err
	}
	return cmdline.NotFound("the files of step "+string(none.Step)+" are not in the bundle "+a.Bundle.Path,
		"uwf thread export --files, where the step was made, takes them along")
}

// HintNames reports the names that the bundle gives to workflows.
func (a *App) HintNames(ctx context.Context) error {
	names, err := a.Bundle.file.Names(ctx)
	for _, named := range names {
		a.Hint("the bundle gives: %s", NameText(named))
	}
	return err
}

// dirs are the bundle's; its home holds nothing else.
func (b *bundled) dirs() home.Dirs {
	return home.Dirs{Home: b.home, Store: filepath.Join(b.home, "cas")}
}

// only is the only thread of a bundle that was named in place of a thread.
func (b *bundled) only(ctx context.Context, arg string) (id string, named bool, err error) {
	if b.name == "" || arg != b.name {
		return "", false, nil
	}
	if id = b.file.Only(ctx); id == "" {
		return "", true, cmdline.NotFound("there is not just one thread in "+b.name,
			"uwf verify "+plaintext.Word(b.name)+" lists them", "uwf thread read --bundle "+plaintext.Word(b.name)+" <thread>")
	}
	return id, true, nil
}

// NameText says which name a bundle gives to a workflow.
func NameText(w bundle.CheckedWorkflow) string {
	text := fmt.Sprintf("name %s for workflow %s", plaintext.Line(w.Name), w.Hash)
	if w.Name != w.WorkflowName {
		text += fmt.Sprintf(", which calls itself %s: an import does not take it", plaintext.Line(w.WorkflowName))
	}
	return text
}

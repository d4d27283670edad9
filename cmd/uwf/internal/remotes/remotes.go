// Package remotes implements the commands for remotes, which are other stores of threads.
package remotes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/threads"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Commands provides the commands of this package.
type Commands struct{ *app.App }

// Named returns the commands that manage the configured remotes.
func (a Commands) Named() []*ucli.Command {
	return []*ucli.Command{
		a.Leaf(ucli.Command{
			Name: "add", ArgsUsage: "<remote> <address>", Usage: "add a remote",
			Flags: []ucli.Flag{&ucli.BoolFlag{Name: "trust", Usage: "trust the commands of its threads, and its redactions"}},
		}, a.add),
		a.Leaf(ucli.Command{
			Name: "list", Aliases: []string{"ls"}, ArgsUsage: "[remote]", Usage: "list remotes, or the threads on one",
			Flags: []ucli.Flag{
				&ucli.BoolFlag{Name: "waiting", Usage: "only threads that wait for a person"},
				&ucli.BoolFlag{Name: "all", Usage: "include ended threads"},
			},
		}, a.list),
		a.Leaf(ucli.Command{Name: "rename", ArgsUsage: "<remote> <new>", Usage: "rename a remote"}, a.rename),
		a.Leaf(ucli.Command{Name: "remove", Aliases: []string{"rm"}, ArgsUsage: "<remote>", Usage: "remove a remote; threads stay on both sides"}, a.remove),
	}
}

func (a Commands) add(ctx context.Context, c *ucli.Context) error {
	r := remotes.Known{Name: c.Args().Get(0), Trust: c.Bool("trust")}
	if err := remotes.CheckName(r.Name); err != nil {
		return err
	}
	at, err := remote.ParseAddress(c.Args().Get(1), a.Env.Dir)
	if err != nil {
		return err
	}
	r.Address = at.Text
	err = a.change(ctx, "", func(all []remotes.Known, _ int) ([]remotes.Known, remotes.Known, error) {
		if i := indexOf(all, r.Name); i >= 0 {
			return nil, r, cmdline.UsageError(fmt.Sprintf("remote %s already exists: %s", r.Name, all[i].Address), "uwf remote remove "+r.Name)
		}
		return append(all, r), r, nil
	})
	if err == nil {
		a.Hint("uwf push @ %s", r.Name)
	}
	return err
}

func indexOf(all []remotes.Known, name string) int {
	return slices.IndexFunc(all, func(r remotes.Known) bool { return r.Name == name })
}

// change changes the list of remotes, given the index of a named one, and prints the one that change returns.
func (a Commands) change(
	ctx context.Context, name string, change func(all []remotes.Known, i int) ([]remotes.Known, remotes.Known, error),
) error {
	var r remotes.Known
	book, err := a.Book()
	if err != nil {
		return err
	}
	err = book.Change(ctx, func(all []remotes.Known) (_ []remotes.Known, err error) {
		i := indexOf(all, name)
		if i < 0 && name != "" {
			_, err := book.Find(name)
			return nil, cmp.Or(err, error(cmdline.NotFound(fmt.Sprintf("no remote named %q", name), "uwf remote list")))
		}
		all, r, err = change(all, i)
		return all, err
	})
	if err != nil {
		return err
	}
	return a.Printf(r, "%s  %s\n", r.Name, plaintext.Line(r.Address))
}

func (a Commands) rename(ctx context.Context, c *ucli.Context) error {
	name := c.Args().Get(1)
	if err := remotes.CheckName(name); err != nil {
		return err
	}
	return a.change(ctx, c.Args().First(), func(all []remotes.Known, i int) ([]remotes.Known, remotes.Known, error) {
		if indexOf(all, name) >= 0 {
			return nil, all[i], cmdline.UsageError("remote "+name+" already exists", "uwf remote list")
		}
		all[i].Name = name
		return all, all[i], nil
	})
}

func (a Commands) remove(ctx context.Context, c *ucli.Context) error {
	return a.change(ctx, c.Args().First(), func(all []remotes.Known, i int) ([]remotes.Known, remotes.Known, error) {
		r := all[i]
		return slices.Delete(all, i, i+1), r, nil
	})
}

func (a Commands) list(ctx context.Context, c *ucli.Context) error {
	if name := c.Args().First(); name != "" {
		return threads.Commands{App: a.App}.ListAt(ctx, name, c.Bool("all"), c.Bool("waiting"))
	}
	if c.Bool("waiting") || c.Bool("all") {
		return cmdline.UsageError("missing remote", "uwf remote list NAME --waiting")
	}
	all, err := a.Remotes()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		a.Hint("uwf remote add team ADDRESS")
	}
	return a.Print(append([]remotes.Known{}, all...), func(w *term.Page) {
		if len(all) == 0 {
			w.Printf("no remotes\n")
			return
		}
		t := term.NewTable("REMOTE", "ADDRESS", "TRUST")
		for _, r := range all {
			trust := ""
			if r.Trust {
				trust = "its commands run"
			}
			t.Row(r.Name, plaintext.Line(r.Address), trust)
		}
		w.Table(t)
	})
}

// Push returns the command uwf push.
func (a Commands) Push() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "push", ArgsUsage: "[thread…] [remote]", UsageText: "(<thread>… | --all) [remote]", Usage: "push threads to a remote",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "all", Usage: "all threads, active and ended"},
			&ucli.BoolFlag{Name: "check", Usage: "verify the remote's copy and repair damaged objects"},
		},
	}, a.push)
}

func (a Commands) push(ctx context.Context, c *ucli.Context) error {
	debug.SetGCPercent(liveData)
	args, name, err := a.withRemote(c.Args().Slice())
	if err != nil {
		return err
	}
	if c.Bool("all") == (len(args) > 0) {
		return cmdline.UsageError("missing threads: name them, or use --all", "uwf push @ "+plaintext.Word(cmp.Or(name, "team")))
	}
	var ids []string
	for i, arg := range args {
		id, err := a.Thread(ctx, arg)
		if err != nil && name == "" && i > 0 && i == len(args)-1 { // the last argument was meant as a remote
			book, lost := a.Book()
			if _, err = book.Find(arg); lost != nil {
				err = lost
			}
		}
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if c.Bool("all") {
		if ids, err = a.ThreadIDs(ctx); err != nil {
			return err
		}
	}
	link, done, err := a.Link(ctx, name, nil)
	if err != nil {
		return err
	}
	defer done()
	pushed, failed := link.Push(ctx, ids, remotes.PushOptions{Check: c.Bool("check")})
	a.printPushed(link, pushed)
	if len(pushed) == 0 && failed != nil {
		return failed
	}
	err = a.Print(Pushed{Remote: link.Name, Threads: pushed}, func(w *term.Page) {
		t := term.NewTable("THREAD", "RESULT", "HEAD", "NODES", "FILES", "ERROR")
		for _, p := range pushed {
			why := ""
			if p.Error != nil {
				why = p.Error.Message
			}
			t.Row(p.Thread, p.Result, string(p.Head), fmt.Sprint(p.Nodes), fmt.Sprint(p.Objects), why)
		}
		w.Table(t)
	})
	return cmp.Or(failed, err)
}

// liveData is the garbage collector's target for transfers. Live data is the queue of nodes to be sent or stored, a few
// megabytes in a transfer of any size.
const liveData = 50

// Pushed is the result of push.
type Pushed struct {
	Remote  string           `json:"remote"`
	Threads []remotes.Pushed `json:"threads"`
}

func (a Commands) printPushed(link *remotes.Link, pushed []remotes.Pushed) {
	for _, p := range pushed {
		p.Error.Advise(link.Engine.Reader.Hints)
		if p.Result == remotes.Behind {
			a.Hint("thread %s has new steps on %s: uwf pull %s %s", p.Thread, plaintext.Line(link.Name), p.Thread, plaintext.Word(link.Name))
			break
		}
	}
	for _, p := range pushed {
		if len(p.Whole) > 0 {
			a.Warnf("%s of thread %s were redacted here, but not on %s; redact them there as well", render.Count(len(p.Whole), "node"), p.Thread, plaintext.Line(link.Name))
		}
	}
}

// withRemote splits off a remote at the end of the arguments.
func (a Commands) withRemote(args []string) (others []string, name string, err error) {
	if len(args) == 0 {
		return nil, "", nil
	}
	last := args[len(args)-1]
	if _, err := remote.ParseAddress(last, a.Env.Dir); err != nil && strings.Contains(last, "@") {
		return nil, "", err // may contain a password, so don't print it
	}
	all, err := a.Remotes()
	if err != nil {
		return nil, "", err
	}
	if indexOf(all, last) >= 0 || remote.IsAddress(last) {
		return args[:len(args)-1], last, nil
	}
	return args, "", nil
}

// Pull returns the command uwf pull.
func (a Commands) Pull() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "pull", ArgsUsage: "<thread> [remote]", Usage: "pull a thread from a remote",
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "discard", Usage: "discard local steps if the histories have diverged"},
			&ucli.BoolFlag{Name: "links", Usage: "accept files with symlinks that point outside the work tree"},
		},
	}, a.pull)
}

func (a Commands) pull(ctx context.Context, c *ucli.Context) error {
	if all, err := a.Remotes(); err != nil {
		return err
	} else if only := c.Args().First(); c.NArg() == 1 && (indexOf(all, only) >= 0 || remote.IsAddress(only)) {
		word := plaintext.Word(only)
		return cmdline.UsageError("missing thread: the argument is a remote", "uwf pull THREAD "+word, "to list its threads: uwf remote list "+word, "to pull all threads that are also here: uwf fetch "+word)
	}
	debug.SetGCPercent(liveData)
	link, done, err := a.Link(ctx, c.Args().Get(1), nil)
	if err != nil {
		return err
	}
	defer done()
	id, err := a.ThreadAt(ctx, link, c.Args().First())
	if err != nil {
		return err
	}
	pulled, err := link.Pull(ctx, []string{id}, remotes.PullOptions{Discard: c.Bool("discard"), Links: c.Bool("links")})
	if err != nil {
		return err
	}
	for _, t := range pulled.Threads {
		if slices.Contains([]string{bundle.Added, bundle.Advanced, bundle.Replaced}, t.Result) && a.usesArtifacts(ctx, t.Head) {
			a.Messagef("uwf: the files of thread %s in %s stay on the machine where it ran", t.Thread, protocol.EnvArtifacts)
		}
	}
	return a.printPulled(link, pulled)
}

// usesArtifacts reports whether a thread's workflow refers to the artifacts directory.
func (a Commands) usesArtifacts(ctx context.Context, head protocol.Hash) bool {
	t, err := a.OpenThread(ctx, head)
	if err != nil {
		return false
	}
	w, err := t.Workflow(ctx)
	text, jerr := json.Marshal(w)
	return err == nil && jerr == nil && (bytes.Contains(text, []byte(protocol.ArtifactsVariable)) || bytes.Contains(text, []byte(protocol.EnvArtifacts)))
}

func (a Commands) printPulled(link *remotes.Link, pulled remotes.Pulled) error {
	for _, t := range pulled.Threads {
		if t.Result == bundle.Replaced {
			a.Warnf("replaced the steps of thread %s here with those of %s; to continue the old ones: "+
				"uwf thread fork %s", t.Thread, plaintext.Line(link.Name), t.Was)
		}
	}
	for _, t := range pulled.Threads {
		if t.Parent != "" {
			continue
		}
		if pulled.Objects > 0 && slices.Contains([]string{bundle.Advanced, bundle.Replaced}, t.Result) {
			a.Hint("to apply changes made on another machine: uwf thread apply %s", t.Thread)
		}
		if slices.Contains([]string{bundle.Added, bundle.Advanced, bundle.Replaced}, t.Result) {
			a.Hint("to continue it here, choose its directory: uwf thread step %s --remote %s --cwd %s", t.Thread, plaintext.Word(link.Name), plaintext.Word(a.Env.Dir))
			break
		}
		if t.Result == bundle.Ahead {
			a.Hint("uwf push %s %s", t.Thread, plaintext.Word(link.Name))
			break
		}
	}
	return a.Print(Pulled{Remote: link.Name, Pulled: pulled}, func(w *term.Page) {
		t := term.NewTable("THREAD", "RESULT", "HEAD")
		for _, p := range pulled.Threads {
			t.Row(p.Thread, p.Result, string(p.Head))
		}
		if len(pulled.Threads) > 0 {
			w.Table(t)
		}
		w.Printf("%s, %d of files, %d redacted\n", render.Count(pulled.Nodes, "node"), pulled.Objects, len(pulled.Redactions))
	})
}

// Pulled is the result of pull and fetch.
type Pulled struct {
	Remote string `json:"remote"`
	remotes.Pulled
}

// Fetch returns the command uwf fetch.
func (a Commands) Fetch() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "fetch", ArgsUsage: "[remote]", Usage: "pull the threads that are on both sides",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "all", Usage: "also pull threads that are not here yet"}},
	}, a.fetch)
}

func (a Commands) fetch(ctx context.Context, c *ucli.Context) error {
	debug.SetGCPercent(liveData)
	link, done, err := a.Link(ctx, c.Args().First(), nil)
	if err != nil {
		return err
	}
	defer done()
	pulled, failed := link.Fetch(ctx, c.Bool("all"))
	if len(pulled.Threads) == 0 && failed != nil {
		return failed
	}
	return cmp.Or(failed, a.printPulled(link, pulled))
}

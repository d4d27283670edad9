package app

import (
	"context"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/remotes"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
)

// Book returns the remotes configured in the home.
func (a *App) Book() (remotes.Book, error) {
	dirs, err := a.Dirs()
	return remotes.Book{Dirs: dirs, Dir: a.Env.Dir}, err
}

// Remotes lists the remotes in [App.Book].
func (a *App) Remotes() ([]remotes.Known, error) {
	book, err := a.Book()
	if err != nil {
		return nil, err
	}
	return book.All()
}

// Link connects the home to a remote until done is called.
func (a *App) Link(ctx context.Context, name string, show func(engine.Event)) (l *remotes.Link, done func(), err error) {
	e, err := a.Engine(ctx, show)
	if err != nil {
		return nil, nil, err
	}
	if a.Bundle != nil {
		return nil, nil, cmdline.Invalid("a bundle has no remotes")
	}
	return remotes.Open(ctx, e, a.Env, name, remotes.OpenOptions{
		Program: "uwf " + cmdline.Version(), Stalled: func(far string) { a.Messagef("waiting for %s…", far) },
		Warn: func(text string) { a.Messagef("uwf: warning: %s", plaintext.Line(text)) },
		Suggest: func(why protocol.Reason) {
			for _, hint := range hints.Of("", why) {
				a.Hint("%s", hint)
			}
		},
	})
}

// ThreadAt resolves a thread argument at a remote: a local thread, a full ID, or the unique beginning or end
// of an ID there.
func (a *App) ThreadAt(ctx context.Context, l *remotes.Link, arg string) (string, error) {
	if id, err := threadid.Parse(arg); err == nil {
		return id, nil
	}
	id, err := a.Thread(ctx, arg)
	if err == nil {
		return id, nil
	}
	part, ok := names.Part(arg)
	if !ok {
		return "", err
	}
	ids, listErr := l.Like(ctx, part)
	switch {
	case listErr != nil:
		return "", listErr
	case len(ids) == 0:
		return "", cmdline.NotFound("thread not found here or on "+plaintext.Line(l.Name)+": "+arg, "uwf remote list "+plaintext.Word(l.Name)+" --all")
	case len(ids) > 1:
		return "", suggest.Ambiguous("thread", arg, ids)
	}
	return ids[0], nil
}

// ThreadIDs returns all threads, active and ended.
func (a *App) ThreadIDs(ctx context.Context) ([]string, error) {
	r, err := a.names()
	if err != nil {
		return nil, err
	}
	return r.Threads(ctx)
}

package engine

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/internal/create"
	"github.com/united-workforce/uwf/moderator/inputs"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// StartOptions are options of [Engine.Start]. The zero value works.
type StartOptions = create.StartOptions

// ForkOptions are options of [Engine.ForkWith]. The zero value works.
type ForkOptions = create.ForkOptions

func (e *Engine) maker() create.Maker {
	return create.Maker{Reader: &e.Reader, Files: e.Files(), Drop: e.ThreadFiles().Drop}
}

// StartThread is [Engine.Start] without options.
func (e *Engine) StartThread(ctx context.Context, s protocol.Start) (thread string, err error) {
	return e.Start(ctx, s, StartOptions{})
}

// Start makes a thread of a stored workflow. Its directory is absolute and exists; inputs that are
// not given have their defaults. Errors are *protocol.Error.
func (e *Engine) Start(ctx context.Context, s protocol.Start, o StartOptions) (thread string, err error) {
	return e.maker().Start(ctx, s, o)
}

// Fork makes a thread whose head is an existing start or step node. It shares everything with the
// thread that the node comes from. Errors are *protocol.Error.
func (e *Engine) Fork(ctx context.Context, node protocol.Hash) (string, error) {
	return e.ForkWith(ctx, node, ForkOptions{})
}

// ForkWith is [Engine.Fork] with options.
func (e *Engine) ForkWith(ctx context.Context, node protocol.Hash, o ForkOptions) (string, error) {
	return e.maker().Fork(ctx, node, o)
}

// Declared are the inputs of a stored workflow.
func Declared(ctx context.Context, r cas.Reader, w protocol.Workflow) (map[string]inputs.Declared, error) {
	return create.Declared(ctx, r, w)
}

// CheckTitle refuses what is no title: it is one line of at most [protocol.MaxTitle]
// characters. Errors are *protocol.Error.
func CheckTitle(title string) error {
	switch {
	case utf8.RuneCountInString(title) > protocol.MaxTitle:
		return fault.New(protocol.CodeUsage, "the title is too long: at most %d characters", protocol.MaxTitle)
	case strings.TrimSpace(title) != title || plaintext.Line(title) != title:
		return fault.New(protocol.CodeUsage, "a title is one line of plain text, without blanks around it")
	}
	return nil
}

// SetTitle gives a thread a title; "" gives it back that of its task. Errors are
// *protocol.Error.
func (e *Engine) SetTitle(ctx context.Context, id, title string) error {
	if err := CheckTitle(title); err != nil {
		return err
	}
	if err := e.MayWrite(); err != nil {
		return fault.Of(err)
	}
	if _, _, err := e.Lookup(ctx, id); err != nil {
		return fault.Of(err)
	}
	title = e.Secrets().Hide(title)
	return fault.OrNil(e.Heads.SetFacts(ctx, id, heads.Facts{Title: &title}))
}

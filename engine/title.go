package engine

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

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
	if err := e.mayWrite(); err != nil {
		return fault.Of(err)
	}
	if _, _, err := e.Lookup(ctx, id); err != nil {
		return fault.Of(err)
	}
	title = e.Secrets().Hide(title)
	return fault.OrNil(e.Heads.SetFacts(ctx, id, heads.Facts{Title: &title}))
}

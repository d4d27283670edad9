package cli

import (
	"context"
	"io"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

func (a commands) inboxCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "inbox", Usage: "list what waits for you: questions and failures, the oldest first, each with the line to type",
	}, func(ctx context.Context, _ *ucli.Context) error {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		items := view.Inbox(ctx, e, func(err error) {
			a.Say("uwf: %v", err)
			a.Status = app.Classify(err).Code
		})
		return a.Print(items, func(w io.Writer) error {
			facts, _ := e.Heads.AllFacts(ctx) // without them ids are whole
			return inboxText(w, items, facts, a.Env.Now(), cmdline.Colours(a.Env, w))
		})
	})
}

// inboxText is a paragraph for each thread: a line to type is not for a table.
func inboxText(
	w io.Writer, items []protocol.InboxItem, facts map[string]heads.Facts, now time.Time, colours bool,
) error {
	if len(items) == 0 {
		_, err := io.WriteString(w, "nothing waits for you\n")
		return err
	}
	const most = 200 // characters of a question: thread show has all of it
	for i, it := range items {
		asks := it.Reason
		if it.Question != nil {
			asks = it.Question.Role + " asks: " + it.Question.Text
		}
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		t := term.NewTable(app.Named(it.Thread, facts), string(it.Status), it.Workflow, app.Started(it.Since, now),
			app.TitleText(it.Title, nil)).InColour(colours)
		t.Headed = false
		if err := t.Print(w); err != nil {
			return err
		}
		if err := term.TextLines(w, "  ", term.FirstLine(asks, most), "  ", it.Command); err != nil {
			return err
		}
	}
	return nil
}

package threads

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/rest"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// notified answers thread notify.
type notified struct {
	Thread string `json:"thread,omitempty"`
	Event  string `json:"event,omitempty"`
}

func (a Commands) threadNotifyCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "notify", Usage: "send the notice about a thread again, as notify in config.yaml says", ArgsUsage: "[thread]",
		Description: "Use this to test the settings, or as a reminder. Without a thread it sends what could not be sent yet.\n" +
			"Notices about threads that come to rest are sent automatically: see docs/notify.md.\n\n" +
			"   uwf thread notify @",
	}, func(ctx context.Context, c *ucli.Context) error {
		if c.Args().Len() == 0 {
			e, err := a.Engine(ctx, nil)
			if err != nil {
				return err
			}
			return a.SendNotices(ctx, e)
		}
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		at, err := e.Show(ctx, id)
		if err != nil {
			return err
		}
		out := notified{Thread: id, Event: rest.Of(at)}
		if out.Event == "" {
			return &protocol.Error{Code: protocol.CodeFailed, Message: fmt.Sprintf("thread %s is %s: there is nothing to tell", id, at.Status), Hints: []string{"uwf thread show " + id}}
		}
		if err := a.PutNotice(ctx, e, out.Event, at); err != nil {
			if errors.Is(err, app.ErrNobody) {
				return cmdline.UsageError(err.Error(), `uwf config set notify.command '["notify-me"]'`)
			}
			return err
		}
		if err := a.SendNotices(ctx, e); err != nil {
			return err
		}
		return a.Print(out, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "told that thread %s: %s\n", id, out.Event)
			return err
		})
	})
}

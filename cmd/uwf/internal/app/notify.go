package app

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/answerlink"
	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/engine/notify"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// notifyCommand is the subcommand of "uwf thread" that sends what waits in the outbox.
const notifyCommand = "notify"

// tellOthers makes an engine notify whomever the config names under notify. A config
// without it costs one read of the file.
func (a *App) tellOthers(ctx context.Context, e *engine.Engine) {
	if src, err := config.ReadFile(e.Dirs.Config()); err != nil || !bytes.Contains(src, []byte("notify")) {
		return
	}
	e.Rested = func(event string, at protocol.StepOutput) {
		ctx := context.WithoutCancel(ctx)
		c, err := a.notifying(ctx, e)
		if err == nil && slices.Contains(c.On, event) && c.reaches() {
			if err = a.PutNotice(ctx, e, event, at); err == nil {
				err = a.startSender(e)
			}
		}
		if err != nil { // no run fails because of it
			a.Say("uwf: warning: nobody was told that thread %s stands still: %v", at.Thread, err)
		}
	}
	e.TellForsaken(ctx)
}

// notifier is what the config says, resolved.
type notifier struct{ config.Notify }

func (n notifier) reaches() bool { return len(n.Command) > 0 || n.Webhook != "" }

// notifying reads what notify in the user's config says; a project's says nothing of it.
func (a *App) notifying(ctx context.Context, e *engine.Engine) (notifier, error) {
	c, err := config.Load(ctx, e.Dirs.Config(), e.Env)
	if err != nil {
		return notifier{}, err
	}
	n, err := config.ResolveNotify(c, e.Env)
	return notifier{n}, err
}

// ErrNobody means that notify in the config names neither a command nor a webhook.
var ErrNobody = errors.New("notify in config.yaml names neither a command nor a webhook")

// PutNotice puts a notice about a thread into the outbox, without the secrets of the home.
func (a *App) PutNotice(ctx context.Context, e *engine.Engine, event string, at protocol.StepOutput) error {
	c, err := a.notifying(ctx, e)
	if err != nil {
		return err
	}
	if !c.reaches() {
		return ErrNobody
	}
	n, err := view.NoticeOf(ctx, e, event, at)
	if err != nil {
		return err
	}
	var random [8]byte
	if _, err := io.ReadFull(a.Env.Rand, random[:]); err != nil {
		return err
	}
	now := a.Env.Now()
	n.At = now.UnixMilli()
	n.ID = fmt.Sprintf("%013d-%s", n.At, hex.EncodeToString(random[:]))
	hide := a.Secrets().Hide
	n.Text, n.Title, n.Reason = plaintext.Line(hide(n.Text)), hide(n.Title), hide(n.Reason)
	if n.Question != nil {
		q := *n.Question
		q.Text, n.Question = hide(q.Text), &q
		if event == protocol.NoticeWaiting && c.Address != "" {
			ends := now.Add(c.Ends)
			word, err := answerlink.Links{Dir: e.Dirs.Notify()}.New(ctx, a.Env.Rand, at.Thread, at.Head, ends)
			if err != nil {
				return err
			}
			ms := ends.UnixMilli()
			n.Link, n.LinkExpiresAt = c.Address+"/answer/"+word, &ms
		}
	}
	return notify.At(e.Dirs.Notify()).Put(n, len(c.Command) > 0, c.Webhook != "")
}

// startSender starts uwf in the background to send what waits.
func (a *App) startSender(e *engine.Engine) error {
	if a.Env.Exe == "" {
		return errors.New("the system does not tell where this program is")
	}
	_, err := proc.Start(proc.Command{
		Path: a.Env.Exe, Args: []string{"--quiet", "--home", e.Dirs.Home, "--store", e.Dirs.Store, "thread", notifyCommand},
		Dir: e.Dirs.Home, Env: a.Env.Environ, Session: true,
	})
	return err
}

// SendNotices sends what waits in the outbox, and logs what it gave up on.
func (a *App) SendNotices(ctx context.Context, e *engine.Engine) error {
	box := notify.At(e.Dirs.Notify())
	if box.Empty() {
		return nil
	}
	c, err := a.notifying(ctx, e)
	if err != nil {
		return err
	}
	var failed []string
	process := a.Env // without .env
	process.Dir = e.Dirs.Home
	err = notify.Sender{Outbox: box, Config: c.Notify, Env: process, Failed: func(notice string, err error) {
		text := plaintext.Line(a.Secrets().Hide(err.Error()))
		failed = append(failed, text)
		_ = eventlog.Append(durable.OS(), e.Dirs.Logs(), eventlog.Entry{ // a log entry that fails stops nothing
			TS: a.Env.Now().UTC(), Tag: "notice-failed", Msg: "notice " + notice + " was not taken: " + text,
		})
	}}.Send(ctx)
	if err == nil && len(failed) > 0 {
		err = &protocol.Error{Code: protocol.CodeFailed, Message: "nobody was told: " + strings.Join(slices.Compact(failed), "; ")}
	}
	return err
}

// FlushNotices sends in the background what an earlier process could not send.
func (a *App) FlushNotices(e *engine.Engine) {
	if box := notify.At(e.Dirs.Notify()); !box.Empty() {
		_ = a.startSender(e) // otherwise the next process sends it
	}
}

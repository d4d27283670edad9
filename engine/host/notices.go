package host

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
	"github.com/united-workforce/uwf/engine/internal/background"
	"github.com/united-workforce/uwf/engine/notify"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// Notices sends notifications as notify in the user's config requires.
type Notices struct {
	Engine  *engine.Engine
	Process env.Env // without .env
}

// ErrNoRecipient means that notify in the config has neither a command nor a webhook.
var ErrNoRecipient = errors.New("notify in config.yaml has neither command nor webhook")

// wanted reports whether the config may contain notify. It is a cheap check for homes without notifications.
func (n Notices) wanted() bool {
	src, err := n.Engine.Reader.Files.Text()
	return err == nil && bytes.Contains(src, []byte("notify"))
}

// settings reads notify from the user's config. A project config cannot set it.
func (n Notices) settings(ctx context.Context) (config.Notify, error) {
	c, err := n.Engine.Reader.Files.Load(ctx, n.Engine.Reader.Env)
	if err != nil {
		return config.Notify{}, err
	}
	return config.ResolveNotify(c, n.Engine.Reader.Env)
}

func reaches(c config.Notify) bool { return len(c.Command) > 0 || c.Webhook != "" }

// atRest sends a notification about a thread at rest. Errors are only warnings, so that no run fails because
// of them.
func (n Notices) atRest(ctx context.Context, ev engine.Event) {
	ctx = context.WithoutCancel(ctx)
	c, err := n.settings(ctx)
	if err == nil && slices.Contains(c.On, ev.Notice) && reaches(c) {
		if err = n.Put(ctx, ev.Notice, *ev.Output); err == nil {
			err = n.startSender()
		}
	}
	if err != nil && n.Engine.Reader.Warn != nil {
		n.Engine.Reader.Warn(fmt.Sprintf("could not send a notification that thread %s stopped: %v", ev.Step.Thread, err))
	}
}

// Put puts a notification about a thread into the outbox, with the home's secrets removed. The error is
// [ErrNoRecipient] if there is no recipient.
func (n Notices) Put(ctx context.Context, event string, at protocol.StepOutput) error {
	c, err := n.settings(ctx)
	if err != nil {
		return err
	}
	if !reaches(c) {
		return ErrNoRecipient
	}
	notice, err := view.NoticeOf(ctx, n.Engine, event, at)
	if err != nil {
		return err
	}
	var random [8]byte
	if _, err := io.ReadFull(n.Process.Rand, random[:]); err != nil {
		return err
	}
	now := n.Process.Now()
	notice.At = now.UnixMilli()
	notice.ID = fmt.Sprintf("%013d-%s", notice.At, hex.EncodeToString(random[:]))
	hide := n.Engine.Reader.Secrets().Hide
	notice.Text, notice.Title, notice.Reason = plaintext.Line(hide(notice.Text)), hide(notice.Title), hide(notice.Reason)
	if notice.Question != nil {
		q := *notice.Question
		q.Text, notice.Question = hide(q.Text), &q
		if event == protocol.NoticeWaiting && c.Address != "" {
			ends := now.Add(c.Ends)
			links := answerlink.Links{Dir: n.Engine.Reader.Dirs.Notify()}
			word, err := links.New(ctx, n.Process.Rand, at.Thread, at.Head, ends)
			if err != nil {
				return err
			}
			ms := ends.UnixMilli()
			notice.Link, notice.LinkExpiresAt = c.Address+"/answer/"+word, &ms
		}
	}
	return n.outbox().Put(notice, len(c.Command) > 0, c.Webhook != "")
}

func (n Notices) outbox() notify.Outbox { return notify.At(n.Engine.Reader.Dirs.Notify()) }

// startSender starts this program in the background to empty the outbox.
func (n Notices) startSender() error {
	if n.Process.Exe == "" {
		return errors.New("cannot determine the path of this program")
	}
	dirs := n.Engine.Reader.Dirs
	_, err := proc.Start(proc.Command{
		Path: n.Process.Exe, Args: background.Call{Home: dirs.Home, Store: dirs.Store}.Args(), Dir: dirs.Home,
		Env: append(slices.Clip(n.Process.Environ), env.CallMark), Session: true,
	})
	return err
}

// Send sends the notifications in the outbox, and logs those that it gave up on.
func (n Notices) Send(ctx context.Context) error {
	if n.outbox().Empty() {
		return nil
	}
	c, err := n.settings(ctx)
	if err != nil {
		return err
	}
	dirs := n.Engine.Reader.Dirs
	var failed []string
	process := n.Process
	process.Dir = dirs.Home
	err = notify.Sender{Outbox: n.outbox(), Config: c, Env: process, Failed: func(notice string, err error) {
		text := plaintext.Line(n.Engine.Reader.Secrets().Hide(err.Error()))
		failed = append(failed, text)
		_ = eventlog.Append(durable.OS(), dirs.Logs(), eventlog.Entry{ // a failed log entry doesn't matter
			TS: process.Now().UTC(), Tag: "notice-failed", Msg: "notification " + notice + " was not accepted: " + text,
		})
	}}.Send(ctx)
	if err == nil && len(failed) > 0 {
		err = &protocol.Error{Code: protocol.CodeFailed,
			Message: "could not send notifications: " + strings.Join(slices.Compact(failed), "; ")}
	}
	return err
}

// Flush starts sending, in the background, what earlier processes left in the outbox.
func (n Notices) Flush() {
	if !n.outbox().Empty() {
		_ = n.startSender() // on failure, the next process sends it
	}
}

// Package notify sends notifications about threads at rest to a command and to a webhook. A notification is
// first put into an outbox, so that no step waits for the network. A separate process sends it from there,
// retries if that can help, and eventually gives up. If that process is killed, a notification can be sent
// twice, with the same ID.
package notify

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Limits of retries.
const (
	tries    = 6
	patience = 15 * time.Second // timeout of one try
	firstGap = 2 * time.Second  // wait before the second try; each further one is four times as long
	look     = time.Second      // poll interval of the outbox while a retry is pending
)

// Sender empties an outbox.
type Sender struct {
	Outbox Outbox
	Config config.Notify
	Env    env.Env
	// Failed is called for each notification that was given up. err contains no secrets.
	Failed func(notice string, err error)
	// Pause waits; if nil, in real time.
	Pause func(context.Context, time.Duration) error
	// Post calls a webhook; if nil, the program of package webcall does.
	Post func(context.Context, webcall.Webhook) (webcall.Reply, error)
}

// trying is the retry state of a notification.
type trying struct {
	times int
	next  time.Time
}

// Send sends notifications until the outbox is empty. Only one process sends at a time. Others return
// immediately: the sender checks the outbox again after it has released its lock.
func (s Sender) Send(ctx context.Context) error {
	for !s.Outbox.Empty() {
		lock, err := durable.TryLock(filepath.Join(filepath.Dir(s.Outbox.Dir), "outbox.lock"))
		if errors.Is(err, durable.ErrLocked) {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.empty(ctx)
		if err := errors.Join(err, lock.Unlock()); err != nil {
			return err
		}
	}
	return nil
}

func (s Sender) empty(ctx context.Context) error {
	tried, pause := map[string]trying{}, s.Pause
	if pause == nil {
		pause = retry.Pause
	}
	for {
		names := s.Outbox.waits()
		if len(names) == 0 {
			return nil
		}
		for _, name := range names {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			t := tried[name]
			if s.Env.Now().Before(t.next) {
				continue
			}
			again, err := s.send(ctx, name)
			if t.times++; err == nil || !again || t.times >= tries {
				if err != nil {
					s.Failed(name, err)
				}
				if err := s.Outbox.drop(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err // it is sent twice
				}
				continue
			}
			t.next = s.Env.Now().Add(firstGap << (2 * (t.times - 1)))
			tried[name] = t
		}
		if s.Outbox.Empty() {
			return nil
		}
		if err := pause(ctx, look); err != nil {
			return err
		}
	}
}

// send makes one try. again means that another try may succeed.
func (s Sender) send(ctx context.Context, name string) (again bool, err error) {
	data, err := s.Outbox.read(name)
	if err != nil {
		return errors.As(err, new(*fs.PathError)), err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errors.New("timed out after "+patience.String()))
	defer cancel()
	id, way, _ := strings.Cut(name, ".")
	switch {
	case way == byCommand && len(s.Config.Command) > 0:
		return true, s.command(ctx, data)
	case way == byWebhook && s.Config.Webhook != "":
		return s.post(ctx, id, data)
	}
	return false, nil // the config no longer requires it
}

// command runs the configured program in Env's directory and environment. The notification is one line on its
// stdin, which the program can close unread.
func (s Sender) command(ctx context.Context, data []byte) error {
	dir := s.Env.Dir
	path, err := proc.LookPath(s.Config.Command[0], dir, s.Env.Environ)
	if err != nil {
		return fmt.Errorf("notify.command: %w", err)
	}
	cmd := proc.Command{Path: path, Args: s.Config.Command[1:], Dir: dir, Env: s.Env.Environ, Session: true}
	out, err := proc.Run(ctx, cmd, bytes.NewReader(append(data, '\n')), 0, time.Second)
	if err != nil {
		return fmt.Errorf("notify.command: %w", err)
	}
	if out.Code != 0 {
		return fmt.Errorf("notify.command failed (exit status %d)", out.Code)
	}
	return nil
}

// Headers of a posted notification. The signature covers the time, a dot and the body.
const (
	headerID        = "X-Uwf-Id"
	HeaderTime      = "X-Uwf-Time"
	HeaderSignature = "X-Uwf-Signature"
)

// Signature returns the value of [HeaderSignature] for a body and a time as in [HeaderTime], in seconds.
func Signature(secret, at string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// post posts a notification. Errors omit the address, which may contain a key.
func (s Sender) post(ctx context.Context, id string, data []byte) (again bool, err error) {
	hook := webcall.Webhook{URL: s.Config.Webhook, Body: string(data), Header: map[string]string{
		"Content-Type": "application/json", "User-Agent": "uwf", headerID: id,
	}}
	if s.Config.Secret != "" {
		at := strconv.FormatInt(s.Env.Now().Unix(), 10)
		hook.Header[HeaderTime], hook.Header[HeaderSignature] = at, Signature(s.Config.Secret, at, data)
	}
	send := s.Post
	if send == nil {
		send = func(ctx context.Context, hook webcall.Webhook) (webcall.Reply, error) {
			return webcall.Do(ctx, s.Env, webcall.Request{Webhook: &hook}, io.Discard)
		}
	}
	answer, err := send(ctx, hook)
	switch {
	case err != nil:
		var missing *protocol.Error // otherwise it may have been killed, or an update was replacing it
		return !errors.As(err, &missing), fmt.Errorf("notify.webhook: %w", err)
	case answer.Error != nil:
		return answer.Error.Again, errors.New("notify.webhook: " + answer.Error.Message)
	case answer.Status/100 == 2:
		return false, nil
	}
	const tooMany = 429
	return answer.Status == tooMany || answer.Status/100 == 5, fmt.Errorf("notify.webhook answered with status %d", answer.Status)
}

// Ways to send a notification.
const (
	byCommand = "command"
	byWebhook = "webhook"
)

// longest is the maximum size of a notification in bytes.
const longest = 256 << 10

// Outbox is a directory of unsent notifications.
type Outbox struct{ Dir string }

// At returns the outbox in a home's notification directory.
func At(dir string) Outbox { return Outbox{Dir: filepath.Join(dir, "outbox")} }

// Put adds a notification to the outbox, once for each enabled way to send it.
func (o Outbox) Put(n protocol.Notice, command, webhook bool) error {
	data, err := json.Marshal(n)
	if len(data) > longest { // shorten a very long question or reason; its page has the full text
		n.Question, n.Reason, n.Text = nil, fmt.Sprintf("%.1000s", n.Reason), fmt.Sprintf("%.1000s", n.Text)
		data, err = json.Marshal(n)
	}
	if err == nil {
		err = os.MkdirAll(o.Dir, 0o700)
	}
	for way, wanted := range map[string]bool{byCommand: command, byWebhook: webhook} {
		if wanted && err == nil {
			err = durable.Replace(durable.OS(), filepath.Join(o.Dir, n.ID+"."+way), data, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("store notification in the outbox: %w", err)
	}
	return nil
}

// waits lists the names of the unsent notifications, oldest first.
func (o Outbox) waits() []string {
	entries, _ := os.ReadDir(o.Dir) // the directory may not exist
	var names []string
	for _, entry := range entries {
		_, way, _ := strings.Cut(entry.Name(), ".")
		if way == byCommand || way == byWebhook {
			names = append(names, entry.Name())
		}
	}
	return names
}

// Empty reports whether the outbox is empty.
func (o Outbox) Empty() bool { return len(o.waits()) == 0 }

func (o Outbox) read(name string) ([]byte, error) {
	return safeopen.ReadFile(filepath.Join(o.Dir, name), longest+4096, safeopen.NoFollow)
}

func (o Outbox) drop(name string) error { return os.Remove(filepath.Join(o.Dir, name)) }

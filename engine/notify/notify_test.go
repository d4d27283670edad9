//go:build unix

package notify_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/notify"
	"github.com/united-workforce/uwf/engine/webcall"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/programtest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// desk is an outbox with a sender and a fake clock.
type desk struct {
	notify.Sender
	failed []string
	paused time.Duration
}

func newDesk(t *testing.T, c config.Notify) *desk {
	t.Helper()
	d := &desk{}
	now := time.Unix(1_700_000_000, 0)
	d.Sender = notify.Sender{
		Outbox: notify.At(filepath.Join(t.TempDir(), "notify")), Config: c,
		Env:    env.Env{Dir: t.TempDir(), Environ: []string{"PATH=" + os.Getenv("PATH")}, Now: func() time.Time { return now }},
		Failed: func(notice string, err error) { d.failed = append(d.failed, notice+" "+err.Error()) },
		Pause: func(_ context.Context, by time.Duration) error {
			now, d.paused = now.Add(by), d.paused+by
			return nil
		},
	}
	return d
}

func notice(id string) protocol.Notice {
	return protocol.Notice{
		ID: id, Event: protocol.NoticeWaiting, Text: "it waits", Link: "https://example.org/answer/secret",
		InboxItem: protocol.InboxItem{Thread: "06FBZXRDS10W7W0C8X5KCE0GXG", Question: &protocol.Question{Role: "r", Text: "May it?"}},
	}
}

// A command gets the notice on stdin, but not in its arguments or environment.
func TestCommand(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	d := newDesk(t, config.Notify{Command: []string{"sh", "-c", `cat > "$0"; { echo "$@"; env; } > "$0.seen"`, out, "an argument"}})
	require.NoError(t, d.Outbox.Put(notice("1"), true, false))
	require.NoError(t, d.Send(t.Context()))
	require.Empty(t, d.failed)
	require.True(t, d.Outbox.Empty())
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	require.True(t, strings.HasSuffix(string(data), "}\n"), "a line")
	require.Equal(t, 1, strings.Count(string(data), "\n"))
	var got protocol.Notice
	require.NoError(t, json.Unmarshal(data, &got))
	require.Equal(t, notice("1"), got)
	seen, err := os.ReadFile(out + ".seen")
	require.NoError(t, err)
	require.NotContains(t, string(seen), "secret")
}

// A command that fails or doesn't read is retried, then given up. It doesn't block other notices.
func TestCommandFails(t *testing.T) {
	t.Parallel()
	marks := filepath.Join(t.TempDir(), "marks")
	d := newDesk(t, config.Notify{Command: []string{"sh", "-c", `echo x >> "$0"; exit 3`, marks}})
	long := notice("1")
	long.Question.Text = strings.Repeat("x", 200<<10) // more than a pipe buffers
	require.NoError(t, d.Outbox.Put(long, true, false))
	require.NoError(t, d.Send(t.Context()))
	prosetest.Text(t, d.failed)
	data, err := os.ReadFile(marks)
	require.NoError(t, err)
	require.Equal(t, 6, strings.Count(string(data), "x"))
	require.Greater(t, d.paused, 10*time.Minute)
	require.True(t, d.Outbox.Empty())
}

// A webhook gets the signed notice. It is retried only after temporary errors, and no message contains its
// address.
func TestWebhook(t *testing.T) {
	t.Parallel()
	answers := []webcall.Reply{{Status: 500}, {Status: 429}, {Status: 200}}
	var bodies []string
	d := newDesk(t, config.Notify{Webhook: "https://example.org/key-of-the-hook", Secret: "k"})
	d.Post = func(_ context.Context, p webcall.Webhook) (answer webcall.Reply, err error) {
		at := p.Header[notify.HeaderTime]
		require.NotEmpty(t, at)
		require.Equal(t, notify.Signature("k", at, []byte(p.Body)), p.Header[notify.HeaderSignature])
		require.Equal(t, "https://example.org/key-of-the-hook", p.URL)
		bodies = append(bodies, p.Body)
		answer, answers = answers[0], answers[1:]
		return answer, nil
	}
	require.NoError(t, d.Outbox.Put(notice("1"), false, true))
	require.NoError(t, d.Send(t.Context()))
	require.Len(t, bodies, 3)
	require.Equal(t, bodies[0], bodies[2])
	require.Empty(t, d.failed)

	for _, once := range []webcall.Reply{{Status: 404}, {Status: 302}, {Error: &webcall.Error{Message: "invalid notify.webhook.url"}}} {
		answers, bodies = []webcall.Reply{once}, nil
		require.NoError(t, d.Outbox.Put(notice("2"), false, true))
		require.NoError(t, d.Send(t.Context()))
		require.Len(t, bodies, 1)
	}

	d.Post = nil // the program is missing: the test's PATH has none
	d.Env.Environ = []string{"PATH=" + t.TempDir()}
	require.NoError(t, d.Outbox.Put(notice("3"), false, true))
	require.NoError(t, d.Send(t.Context()))
	prosetest.Text(t, d.failed)
	require.NotContains(t, strings.Join(d.failed, ""), "key-of-the-hook")
}

// The program that posts gets the request on its stdin.
func TestProgramPosts(t *testing.T) {
	t.Parallel()
	d := newDesk(t, config.Notify{Webhook: "https://example.org/"})
	bin := t.TempDir()
	script := `#!/bin/sh
cat > "$0.in" && echo '{"Status": 200}' >&2
`
	programtest.Write(t, filepath.Join(bin, webcall.Program), script)
	d.Env.Environ = []string{"PATH=" + bin + ":" + os.Getenv("PATH")}
	require.NoError(t, d.Outbox.Put(notice("1"), false, true))
	require.NoError(t, d.Send(t.Context()))
	require.Empty(t, d.failed)
	data, err := os.ReadFile(filepath.Join(bin, webcall.Program+".in"))
	require.NoError(t, err)
	var r webcall.Request
	require.NoError(t, json.Unmarshal(data, &r))
	require.Equal(t, d.Config.Webhook, r.Webhook.URL)
	require.Contains(t, r.Webhook.Body, notice("1").Thread)
}

// A notice that can't be removed is not sent again and again, and one that can't be read now is tried again.
func TestObstacles(t *testing.T) {
	t.Parallel()
	d := newDesk(t, config.Notify{})
	looks := 0
	d.Pause = func(context.Context, time.Duration) error {
		if looks++; looks > 9 {
			return errors.New("endless")
		}
		return nil
	}
	obstacle := filepath.Join(d.Outbox.Dir, "1.command")
	require.NoError(t, os.MkdirAll(filepath.Join(obstacle, "x"), 0o700))
	require.ErrorContains(t, d.Send(t.Context()), obstacle)
	require.Len(t, d.failed, 1)
	require.NoError(t, os.RemoveAll(obstacle))

	if os.Getuid() > 0 {
		require.NoError(t, d.Outbox.Put(notice("2"), true, false))
		unreadable := filepath.Join(d.Outbox.Dir, "2.command")
		require.NoError(t, os.Chmod(unreadable, 0))
		d.Pause = func(context.Context, time.Duration) error { return os.Chmod(unreadable, 0o600) }
		now := time.Unix(1_700_000_000, 0)
		d.Env.Now = func() time.Time { now = now.Add(time.Minute); return now }
		require.NoError(t, d.Send(t.Context()))
		require.Len(t, d.failed, 1)
	}
}

// Obsolete notices are dropped, and a question of any length has its page.
func TestOutbox(t *testing.T) {
	t.Parallel()
	d := newDesk(t, config.Notify{})
	n := notice("1")
	n.Question.Text = strings.Repeat("x", 1<<20)
	n.Reason = n.Question.Text
	require.NoError(t, d.Outbox.Put(n, true, true))
	entries, err := os.ReadDir(d.Outbox.Dir)
	require.NoError(t, err)
	require.Len(t, entries, 2)
	for _, entry := range entries {
		info, err := entry.Info()
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(4<<10))
		require.Zero(t, info.Mode().Perm()&0o077)
	}
	require.NoError(t, d.Send(t.Context()))
	require.Empty(t, d.failed)
	require.True(t, d.Outbox.Empty())
}

package main

import (
	"context"
	"iter"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/helper"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
)

// remoteFile acts as uwf-remote-file.
func remoteFile() {
	helper.Main("uwf-remote-file", func(ctx context.Context, e env.Env, a remote.Address, h wire.Hello) (remote.Remote, error) {
		return storeremote.Open(ctx, a.Text, storeremote.Options{Hash: h.Hash, Program: "uwf-remote-file", Now: e.Now})
	})
}

// remoteKill does the same for addresses kill:///path. With KILL_AT it kills the uwf that started it: before
// or after nodes or objects are stored, or the head is swapped. With CLOCK_AHEAD its clock is ahead.
func remoteKill() {
	helper.Main("uwf-remote-kill", func(ctx context.Context, e env.Env, a remote.Address, h wire.Hello) (remote.Remote, error) {
		ahead, _ := time.ParseDuration(e.Get("CLOCK_AHEAD"))
		now := func() time.Time { return e.Now().Add(ahead) }
		r, err := storeremote.Open(ctx, strings.TrimPrefix(a.Text, "kill://"), storeremote.Options{Hash: h.Hash, Program: "uwf-remote-kill", Now: now})
		return &killing{Remote: r, at: e.Get("KILL_AT")}, err
	})
}

// killing kills our parent and exits, so nothing later is done.
type killing struct {
	remote.Remote
	at string
}

func (k *killing) kill(at string) {
	if k.at == at {
		if p, err := os.FindProcess(os.Getppid()); err == nil {
			_ = p.Signal(syscall.SIGKILL)
		}
		os.Exit(1)
	}
}

func (k *killing) Put(ctx context.Context, records []remote.Record) ([]cas.Hash, error) {
	k.kill("put")
	different, err := k.Remote.Put(ctx, records)
	k.kill("after put")
	return different, err
}

func (k *killing) Swap(ctx context.Context, s remote.Swap) error {
	k.kill("swap")
	err := k.Remote.Swap(ctx, s)
	k.kill("after swap")
	return err
}

func (k *killing) PutObjects(ctx context.Context, objects []remote.Object) error {
	k.kill("put-objects")
	err := k.Remote.PutObjects(ctx, objects)
	k.kill("after put-objects")
	return err
}

func (k *killing) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	k.kill("get-objects")
	return k.Remote.GetObjects(ctx, ids)
}

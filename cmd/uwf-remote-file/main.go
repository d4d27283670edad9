// Command uwf-remote-file serves a remote in a directory of this machine. uwf starts it; see
// docs/remote-protocol.md.
package main

import (
	"context"
	"os"
	"strconv"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/helper"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
)

func main() { helper.Main("uwf-remote-file", open) }

func open(ctx context.Context, e env.Env, a remote.Address, h wire.Hello) (remote.Remote, error) {
	o := storeremote.Options{
		Hash: h.Hash, Program: "uwf-remote-file " + helper.Version(), Now: e.Now,
		Shared: e.Get(remote.TrustVariable) != "",
	}
	if id, err := strconv.Atoi(e.Get("SUDO_UID")); err == nil && os.Geteuid() == 0 {
		o.Users = append(o.Users, id)
	}
	return storeremote.Open(ctx, a.Text, o)
}

// Command uwf-remote-file speaks to a remote in a directory of this machine. uwf starts
// it; see docs/remotes.md.
package main

import (
	"context"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/helper"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
)

func main() { helper.Main("uwf-remote-file", open) }

func open(ctx context.Context, e env.Env, a remote.Address, h wire.Hello) (remote.Remote, error) {
	return storeremote.Open(ctx, a.Text, storeremote.Options{Hash: h.Hash, Program: "uwf-remote-file " + helper.Version(), Now: e.Now})
}

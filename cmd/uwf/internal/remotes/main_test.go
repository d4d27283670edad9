package remotes_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/helper"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/remote/wire"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// program is the helper for a remote in a directory: this test binary under another name.
const program = "uwf-remote-file"

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == program {
		helper.Main(program, func(ctx context.Context, e env.Env, a remote.Address, h wire.Hello) (remote.Remote, error) {
			return storeremote.Open(ctx, a.Text, storeremote.Options{Hash: h.Hash, Program: program, Now: e.Now})
		})
		return
	}
	tmpfstest.Main(prosetest.Of(m))
}

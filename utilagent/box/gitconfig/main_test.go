package gitconfig

import (
	"os"
	"testing"

	"github.com/united-workforce/uwf/util/prosetest"
)

func TestMain(m *testing.M) {
	code := prosetest.Run(m)
	if made.dir != "" {
		_ = os.RemoveAll(made.dir)
	}
	os.Exit(code)
}

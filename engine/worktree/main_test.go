package worktree_test

import (
	"testing"

	"github.com/united-workforce/uwf/engine/worktree/worktreetest"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// tests removes the kit's repository afterwards.
type tests struct{ tmpfstest.Runner }

func (t tests) Run() int {
	defer worktreetest.Clean()
	return t.Runner.Run()
}

func TestMain(m *testing.M) { tmpfstest.Main(tests{prosetest.Of(m)}) }

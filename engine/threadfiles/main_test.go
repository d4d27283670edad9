package threadfiles_test

import (
	"testing"

	"github.com/united-workforce/uwf/engine/workspace/workspacetest"
	"github.com/united-workforce/uwf/util/tmpfstest"
)

// tests removes the kit's repository behind them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	defer workspacetest.Clean()
	return t.M.Run()
}

func TestMain(m *testing.M) { tmpfstest.Main(tests{m}) }

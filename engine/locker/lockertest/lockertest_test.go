package lockertest_test

import (
	"testing"

	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/engine/locker/lockertest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	lockertest.Run(t, func(*testing.T) locker.Locker { return new(lockertest.Memory) })
}

func TestFiles(t *testing.T) {
	t.Parallel()
	lockertest.Run(t, func(t *testing.T) locker.Locker { return locker.Files{Dir: t.TempDir()} })
}

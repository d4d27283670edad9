//go:build !linux

package proc

func startInit(c Command) (*Child, error) {
	c.Init = false
	return Start(c)
}

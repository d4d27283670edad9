package durable

import "golang.org/x/sys/windows"

// FreeSpace is how many bytes this user can still write to the volume that path
// is on.
func FreeSpace(path string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}

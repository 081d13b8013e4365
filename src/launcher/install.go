package main

import (
	"io"
	"os"
)

// install copies this program to dest. It appears there whole or not at all: an init container may be run twice.
func install(dest string) error {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	part := dest + ".part"
	copied, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	if _, err := io.Copy(copied, self); err != nil {
		copied.Close()
		return err
	}
	if err := copied.Close(); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o555); err != nil {
		return err
	}
	return os.Rename(part, dest)
}

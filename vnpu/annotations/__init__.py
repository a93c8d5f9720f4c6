"""The codecs: every text that HAMi, Volcano and the device plugin keep in annotations."""

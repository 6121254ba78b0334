//! The menu of GRUB, as far as one entry has to be named: `submenu>entry`, by their identifiers.

/// The entry that boots an image, as `grub-reboot` names it; entries for recovery are none.
///
/// `menu` is the text of grub.cfg. Its own functions begin a line with `menuentry` or `submenu`, a title, and
/// `$menuentry_id_option 'IDENTIFIER'` before the brace (grub-mkconfig's 10_linux).
pub(super) fn find_entry(menu: &str, image: &str) -> Option<String> {
    let mut open: Vec<Option<String>> = Vec::new();
    for line in menu.lines().map(str::trim) {
        let mut words = line.split_whitespace();
        match words.next() {
            Some("menuentry" | "submenu") => open.push(parse_identifier(line)),
            Some("linux" | "linux16" | "linuxefi") if is_boot_line(line, image) => return entry_path(&open),
            Some(word) if line.ends_with('{') && word != "}" => open.push(None),
            Some("}") => drop(open.pop()),
            _ => (),
        }
    }
    None
}

/// The text behind `$menuentry_id_option`; without one the title.
fn parse_identifier(line: &str) -> Option<String> {
    let behind = line.split_once("menuentry_id_option").map_or(line, |(_, behind)| behind);
    let quote = behind.find(['\'', '"'])?;
    let rest = &behind[quote..];
    let end = rest[1..].find(&rest[..1])? + 1;
    Some(rest[1..end].to_owned())
}

/// Whether this line loads the image, for a whole system: its path may be one below the mount of `/boot`.
fn is_boot_line(line: &str, image: &str) -> bool {
    let file = image.rsplit('/').next().unwrap_or(image);
    let mut words = line.split_whitespace().skip(1);
    let is_image = words.next().is_some_and(|path| path.rsplit('/').next() == Some(file));
    is_image && !words.any(|word| matches!(word, "single" | "recovery" | "rescue"))
}

fn entry_path(open: &[Option<String>]) -> Option<String> {
    let names: Vec<_> = open.iter().flatten().map(String::as_str).collect();
    (!names.is_empty()).then(|| names.join(">"))
}

#[cfg(test)]
mod tests {
    use super::find_entry;

    const MENU: &str = r#"
function load_video {
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  fi
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'gnulinux-simple-1234' {
	load_video
	if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
	linux	/boot/vmlinuz-6.12.1 root=UUID=1234 ro  quiet
	initrd	/boot/initrd.img-6.12.1
}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-1234' {
	menuentry 'with Linux 6.1.0-47 (recovery mode)' $menuentry_id_option 'gnulinux-6.1.0-47-recovery-1234' {
		linux	/boot/vmlinuz-6.1.0-47 root=UUID=1234 ro single
	}
	menuentry 'with Linux 6.1.0-47' $menuentry_id_option "gnulinux-6.1.0-47-advanced-1234" {
		if [ x = y ]; then
		    echo 'never {'
		fi
		linux	/boot/vmlinuz-6.1.0-47 root=UUID=1234 ro  quiet
	}
}
menuentry "Own" {
	linux /bzImage-own root=/dev/sda1
}
"#;

    #[test]
    fn an_entry_is_named_through_its_submenu_and_recovery_is_none() {
        assert_eq!(find_entry(MENU, "/boot/vmlinuz-6.12.1").as_deref(), Some("gnulinux-simple-1234"));
        let inner = Some("gnulinux-advanced-1234>gnulinux-6.1.0-47-advanced-1234");
        assert_eq!(find_entry(MENU, "/boot/vmlinuz-6.1.0-47").as_deref(), inner);
        // With /boot on a file system of its own the menu's paths begin there.
        assert_eq!(find_entry(MENU, "/boot/bzImage-own").as_deref(), Some("Own"));
    }

    #[test]
    fn an_image_that_is_in_no_entry_has_no_name() {
        assert_eq!(find_entry(MENU, "/boot/vmlinuz-6.1.0"), None);
        assert_eq!(find_entry("", "/boot/vmlinuz"), None);
        assert_eq!(find_entry("}\n}\nmenuentry {\nlinux /a\n}", "/a"), None);
    }
}

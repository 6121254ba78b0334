//! The machine that executes the code: a stack, and slots for symbols.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    Push(i64),
    Load(usize),
    Store(usize),
    Add,
    Subtract,
    Multiply,
    Print,
}

/// Executes code, passes each instruction to `watch`, and returns the printed numbers.
pub fn execute(code: &[Instruction], mut watch: impl FnMut(Instruction)) -> Result<Vec<i64>, String> {
    let (mut stack, mut slots, mut printed) = (Vec::new(), Vec::new(), Vec::new());
    for &instruction in code {
        watch(instruction);
        let mut pop = || stack.pop().ok_or("the stack is empty");
        let value = match instruction {
            Instruction::Push(number) => Some(number),
            Instruction::Load(slot) => Some(slots.get(slot).copied().ok_or("a slot without a value")?),
            Instruction::Add => Some(i64::wrapping_add(pop()?, pop()?)),
            Instruction::Subtract => {
                let right: i64 = pop()?;
                Some(pop()?.wrapping_sub(right))
            }
            Instruction::Multiply => Some(i64::wrapping_mul(pop()?, pop()?)),
            Instruction::Store(slot) => {
                let value = pop()?;
                if slots.len() <= slot {
                    slots.resize(slot + 1, 0);
                }
                slots[slot] = value;
                None
            }
            Instruction::Print => {
                printed.push(pop()?);
                None
            }
        };
        stack.extend(value);
    }
    Ok(printed)
}

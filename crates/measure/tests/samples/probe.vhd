library ieee;
use ieee.std_logic_1164.all;

entity probe is end;

architecture test of probe is
  type state_t is (idle, program, erase);
  signal rb_n  : std_logic;                      -- open drain with a pull-up: H and L too
  signal rb1_n : std_ulogic;
  signal one   : std_logic_vector(0 downto 0);   -- a vector of one bit
  signal bus8  : std_logic_vector(7 downto 0);
  signal none  : std_logic_vector(-1 downto 0);  -- an empty range
  signal state : state_t := idle;
  signal volts : real := 3.3;
  signal name  : string(1 to 4) := "a b ";
  signal num   : integer := 0;
  signal letter : character := ' ';
begin
  rb_n <= 'H';
  process begin
    wait for 10 us;
    rb_n <= '0'; rb1_n <= '1'; one <= "1"; state <= program; volts <= 1.8; bus8 <= "UX01ZWLH"; name <= "c d "; letter <= 'x';
    wait for 200 us;
    rb_n <= 'Z'; rb1_n <= 'L'; one <= "0"; state <= idle; num <= 7;
    wait for 10 us;
    rb_n <= '0'; rb1_n <= 'W'; one <= "X";
    wait for 100 us;
    rb_n <= 'Z'; rb1_n <= 'H'; one <= "1"; letter <= ' ';
    wait for 10 us;
    rb1_n <= '-';
    wait for 10 us;
    wait;
  end process;
end;
